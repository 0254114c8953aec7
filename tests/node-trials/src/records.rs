//! What the records of a thread say of its owners and its turns.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// What is wrong with the records of a thread. These turns were promised to a client.
pub fn wrongs(
    raddle: &Path,
    home: &Path,
    thread: &str,
    promised: &BTreeSet<String>,
) -> Result<Vec<String>> {
    let records = of(raddle, home, thread)?;
    let mut wrongs = check(&records, promised);
    for wrong in &mut wrongs {
        *wrong = format!("{thread}: {wrong}");
    }
    Ok(wrongs)
}

/// The records of a thread, as they are exported.
pub fn of(raddle: &Path, home: &Path, thread: &str) -> Result<Vec<Value>> {
    let exported = Command::new(raddle)
        .args(["thread", "export", thread])
        .env("RADDLE_HOME", home)
        .output()?;
    if !exported.status.success() {
        let said = String::from_utf8_lossy(&exported.stderr);
        bail!("{thread} cannot be exported: {said}");
    }
    let text = String::from_utf8(exported.stdout)?;
    let records = text.lines().map(serde_json::from_str::<Value>);
    Ok(records.collect::<Result<_, _>>()?)
}

fn check(records: &[Value], promised: &BTreeSet<String>) -> Vec<String> {
    let mut wrongs = Vec::new();
    let mut last = (0, 0);
    let mut owners = 0;
    // Turns by how often they ended.
    let mut turns: BTreeMap<String, usize> = BTreeMap::new();
    for line in records {
        let record = &line["record"];
        let Some(seq) = record["seq"].as_u64() else {
            continue;
        };
        let (before, epoch) = last;
        if seq <= before {
            wrongs.push(format!("record {seq} comes after {before}"));
        }
        last.0 = seq;
        let event = record["body"]["event"].as_object();
        let Some((kind, event)) = event.and_then(|event| event.iter().next()) else {
            continue;
        };
        let id = || event["turn"].as_str().unwrap_or_default().to_owned();
        match kind.as_str() {
            // Deltas that were found may be gone by now, so what is left may end earlier. The first owner begins
            // the thread.
            "owned" => {
                let next = event["epoch"].as_u64().unwrap_or_default();
                let found = event["found"].as_u64().unwrap_or_default();
                if next != epoch + 1 || (epoch > 0 && found < before) {
                    wrongs.push(format!(
                        "epoch {next} begins after {found}, and epoch {epoch} ended with {before}"
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
        wrongs.push("nobody ever had it".to_owned());
    }
    let often = turns.iter().filter(|(_, ends)| **ends != 1);
    wrongs.extend(often.map(|(turn, ends)| format!("turn {turn} ended {ends} times")));
    let lost = promised.iter().filter(|turn| !turns.contains_key(*turn));
    wrongs.extend(lost.map(|turn| format!("turn {turn} was promised and is not there")));
    wrongs
}

/// The ids of all threads that are listed.
pub fn listed(raddle: &Path, home: &Path) -> Result<String> {
    let listed = Command::new(raddle)
        .args(["thread", "list", "--json", "--limit", "1000"])
        .env("RADDLE_HOME", home)
        .output()?;
    let text = String::from_utf8(listed.stdout)?;
    listed
        .status
        .success()
        .then_some(text)
        .context("the threads cannot be listed")
}
