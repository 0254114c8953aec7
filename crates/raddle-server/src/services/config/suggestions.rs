//! The name that someone may have meant.

/// The nearest of some names, if it is near enough to be meant.
pub(super) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Of a short name more would be nothing of it.
    let far = (name.chars().count() / 3).min(3);
    let near = names.map(|it| (distance(name, it), it));
    let near = near.min_by_key(|(distance, _)| *distance)?;
    (near.0 <= far).then_some(near.1)
}

/// How many letters must be added, removed or replaced, or exchanged with their neighbour, to make one of the other.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut before = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let mut least = (last[j + 1] + 1).min(row[j] + 1);
            least = least.min(last[j] + usize::from(a != b));
            if i > 0 && j > 0 && *a == other[j - 1] && one[i - 1] == *b {
                let before: &Vec<usize> = &before;
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_found() {
        let names = ["model", "model_provider", "sandbox_mode", "tui"];
        for (name, wanted) in [
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
            assert_eq!(nearest(name, names.into_iter()), wanted, "{name}");
        }
    }
}
