//! Checks of a thread's records: its owners and its turns.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Returns the problems in the records of a thread. The server confirmed the given turns to a
/// client.
pub fn problems(
    raddle: &Path,
    home: &Path,
    thread: &str,
    confirmed: &BTreeSet<String>,
) -> Result<Vec<String>> {
    let records = of(raddle, home, thread)?;
    let mut problems = check(&records, confirmed);
    for problem in &mut problems {
        *problem = format!("{thread}: {problem}");
    }
    Ok(problems)
}

/// Returns the exported records of a thread.
pub fn of(raddle: &Path, home: &Path, thread: &str) -> Result<Vec<Value>> {
    let output = Command::new(raddle)
        .args(["thread", "export", thread])
        .env("RADDLE_HOME", home)
        .output()?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("{thread} cannot be exported: {stderr}");
    }
    let text = String::from_utf8(output.stdout)?;
    let records = text.lines().map(serde_json::from_str::<Value>);
    Ok(records.collect::<Result<_, _>>()?)
}

fn check(records: &[Value], confirmed: &BTreeSet<String>) -> Vec<String> {
    let mut problems = Vec::new();
    let mut last = (0, 0);
    let mut owners = 0;
    // Number of ends of each turn.
    let mut turns: BTreeMap<String, usize> = BTreeMap::new();
    for line in records {
        let record = &line["record"];
        let Some(seq) = record["seq"].as_u64() else {
            continue;
        };
        let (before, epoch) = last;
        if seq <= before {
            problems.push(format!("record {seq} comes after {before}"));
        }
        last.0 = seq;
        let event = record["body"]["event"].as_object();
        let Some((kind, event)) = event.and_then(|event| event.iter().next()) else {
            continue;
        };
        let id = || event["turn"].as_str().unwrap_or_default().to_owned();
        match kind.as_str() {
            // Deltas that existed then may have been removed, so the remaining records may end
            // earlier. The first owner starts the thread.
            "owned" => {
                let next = event["epoch"].as_u64().unwrap_or_default();
                let found_seq = event["found"].as_u64().unwrap_or_default();
                if next != epoch + 1 || (epoch > 0 && found_seq < before) {
                    problems.push(format!(
                        "epoch {next} begins after {found_seq}, and epoch {epoch} ended with {before}"
                    ));
                }
                last.1 = next;
                owners += 1;
            }
            "turnStarted" => drop(turns.insert(id(), 0)),
            "turnEnded" => *turns.entry(id()).or_default() += 1,
            _ => {}
        }
    }
    if owners == 0 {
        problems.push("no record names an owner".to_owned());
    }
    let often = turns.iter().filter(|(_, ends)| **ends != 1);
    problems.extend(often.map(|(turn, ends)| format!("turn {turn} ended {ends} times")));
    let lost = confirmed.iter().filter(|turn| !turns.contains_key(*turn));
    problems.extend(lost.map(|turn| format!("turn {turn} was promised and is not there")));
    problems
}

/// Returns the ids of all listed threads.
pub fn list_threads(raddle: &Path, home: &Path) -> Result<String> {
    let output = Command::new(raddle)
        .args(["thread", "list", "--json", "--limit", "1000"])
        .env("RADDLE_HOME", home)
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    output
        .status
        .success()
        .then_some(text)
        .context("the threads cannot be listed")
}
