//! Suggestions for misspelt names.

/// Returns the most similar of some names, if it is similar enough.
pub(crate) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A short name has no letters to spare.
    let distance_max = (name.chars().count() / 3).min(3);
    let candidates = names.map(|it| (distance(name, it), it));
    let closest = candidates.min_by_key(|(distance, _)| *distance)?;
    (closest.0 <= distance_max).then_some(closest.1)
}

/// Returns the edit distance: letters added, removed or replaced, or neighbours swapped.
fn distance(word: &str, target: &str) -> usize {
    let (word, target): (Vec<char>, Vec<char>) = (word.chars().collect(), target.chars().collect());
    let mut row_before_last = Vec::new();
    let mut last_row: Vec<usize> = (0..=target.len()).collect();
    for (i, letter) in word.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, target_letter) in target.iter().enumerate() {
            let mut cost = (last_row[j + 1] + 1).min(row[j] + 1);
            cost = cost.min(last_row[j] + usize::from(letter != target_letter));
            if i > 0 && j > 0 && *letter == target[j - 1] && word[i - 1] == *target_letter {
                let row_before_last: &Vec<usize> = &row_before_last;
                cost = cost.min(row_before_last[j - 1] + 1);
            }
            row.push(cost);
        }
        row_before_last = std::mem::replace(&mut last_row, row);
    }
    last_row[target.len()]
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
