//! Suggestions for misspelt names.

use strsim::osa_distance;

/// The minimum length of a name that is recognised in a misspelt one: short names have neighbours
/// of their own.
const MISTYPED_LETTERS_MIN: usize = 5;

/// Returns the most similar of some names, if it is similar enough.
pub(crate) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A short name has no letters to spare.
    let distance_max = (name.chars().count() / 3).min(3);
    let candidates = names.map(|it| (osa_distance(name, it), it));
    let closest = candidates.min_by_key(|(distance, _)| *distance)?;
    (closest.0 <= distance_max).then_some(closest.1)
}

/// Returns the name that this one is with a single typing error: a letter that is missing, added or
/// changed, or two letters that are swapped.
pub(crate) fn mistyped<'a>(
    name: &str,
    mut names: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    names.find(|it| it.chars().count() >= MISTYPED_LETTERS_MIN && osa_distance(name, it) == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_typing_error_is_recognised_in_long_names() {
        let names = ["anthropic", "mistral", "xai", "vllm"];
        for (name, expected) in [
            ("anthopic", Some("anthropic")),
            ("anthroppic", Some("anthropic")),
            ("antrhopic", Some("anthropic")),
            ("misteal", Some("mistral")),
            ("mistralai", None),
            ("mistral", None),
            ("x-ai", None),
            ("vilm", None),
        ] {
            assert_eq!(mistyped(name, names.into_iter()), expected, "{name}");
        }
    }

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
