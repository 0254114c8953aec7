//! Suggestions for misspelt names.

use strsim::osa_distance;

/// Returns the most similar of some names, if it is similar enough.
pub(crate) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A short name has no letters to spare.
    let distance_max = (name.chars().count() / 3).min(3);
    let candidates = names.map(|it| (osa_distance(name, it), it));
    let closest = candidates.min_by_key(|(distance, _)| *distance)?;
    (closest.0 <= distance_max).then_some(closest.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_suggested() {
        let names = ["model", "model_provider", "sandbox_mode", "tui"];
        for (name, expected) in [
            ("modle", Some("model")),
            ("Model", Some("model")),
            ("modell", Some("model")),
            ("model-provider", Some("model_provider")),
            ("sandboxmode", Some("sandbox_mode")),
            ("tuo", Some("tui")),
            ("x", None),
            ("hooks", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, names.into_iter()), expected, "{name}");
        }
    }
}
