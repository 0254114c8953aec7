//! Termination of started processes, including grandchildren.

use std::fs;
use std::process::{Command, Stdio};

/// Kills every descendant of `root`, but not `root` itself.
///
/// A process that is started meanwhile may be missed, so the function looks twice.
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

/// Returns every process with its parent, as `(process, parent)`.
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

/// Parses the parent from a `stat` line. The name is in parentheses and may itself contain
/// parentheses and spaces, so parsing starts after the last one.
fn parent_of(stat: &str) -> Option<u32> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

fn descendants(root: u32, parents: &[(u32, u32)]) -> Vec<u32> {
    let mut processes = vec![root];
    let mut at = 0;
    while at < processes.len() {
        let parent = processes[at];
        for (process, its_parent) in parents {
            if *its_parent == parent && !processes.contains(process) {
                processes.push(*process);
            }
        }
        at += 1;
    }
    processes.remove(0);
    processes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_read_past_a_strange_name() {
        assert_eq!(parent_of("12 (a) b (c)) S 7 12 12 0"), Some(7));
    }

    #[test]
    fn only_descendants_are_found() {
        let parents = [(2, 1), (3, 2), (4, 3), (5, 1), (6, 5)];
        assert_eq!(descendants(2, &parents), [3, 4]);
    }
}
