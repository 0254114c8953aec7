//! Ending what we started, grandchildren included.

use std::fs;
use std::process::{Command, Stdio};

/// Kills every process below `root`, but not `root` itself.
///
/// A process that was started meanwhile may be missed, so this is asked twice.
pub fn kill_descendants(root: u32) {
    for _ in 0..2 {
        let below = descendants(root, &parents());
        if below.is_empty() {
            return;
        }
        let _ = Command::new("kill")
            .arg("-9")
            .args(below.iter().map(u32::to_string))
            .stderr(Stdio::null())
            .status();
    }
}

/// Every process with its parent, as `(process, parent)`.
fn parents() -> Vec<(u32, u32)> {
    let Ok(folder) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    folder
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter_map(|process| {
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
            Some((process, parent_of(&stat)?))
        })
        .collect()
}

/// The name stands in brackets and may itself hold brackets and spaces, so read from the last one.
fn parent_of(stat: &str) -> Option<u32> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

fn descendants(root: u32, parents: &[(u32, u32)]) -> Vec<u32> {
    let mut found = vec![root];
    let mut at = 0;
    while at < found.len() {
        let parent = found[at];
        for (process, its_parent) in parents {
            if *its_parent == parent && !found.contains(process) {
                found.push(*process);
            }
        }
        at += 1;
    }
    found.remove(0);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_read_past_a_strange_name() {
        assert_eq!(parent_of("12 (a) b (c)) S 7 12 12 0"), Some(7));
    }

    #[test]
    fn grandchildren_are_found_and_strangers_are_not() {
        let parents = [(2, 1), (3, 2), (4, 3), (5, 1), (6, 5)];
        assert_eq!(descendants(2, &parents), [3, 4]);
    }
}
