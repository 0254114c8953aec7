//! The page of promises: every goal with its target, the full-size runs, and the gaps.
//!
//! `docs/proofs.json` holds the newest run of each proof, including failures and runs that were
//! ended before they had a result. `cargo xtask prove` writes it; `docs/promises.md` is generated
//! from it.

mod goals;

use std::fmt::{self, Write};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::failure_text::recorded_reason;
use crate::generated;
use crate::prove::PROOFS;
use crate::repository::Tree;
use crate::run::Termination;
use goals::{GOALS, Goal};

pub const RECORDS: &str = "docs/proofs.json";
pub const PAGE: &str = "docs/promises.md";

/// Record of the run in progress, which a run that is interrupted leaves behind. Git ignores it.
const IN_PROGRESS: &str = "target/proof-in-progress.json";

/// A recorded run of a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub name: String,
    /// Description of the run and its size.
    pub size: String,
    /// Measured figures, one per line.
    pub figures: Vec<String>,
    pub date: String,
    pub commit: String,
    pub seconds: u64,
    pub outcome: ProofOutcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofOutcome {
    Passed,
    /// The proof found something.
    Failed {
        /// `None` in records of runs before reasons were recorded.
        reason: Option<String>,
    },
    /// The proof was ended before it had a result.
    Ended {
        reason: String,
    },
}

impl ProofOutcome {
    pub fn of<T>(result: &Result<T>) -> Self {
        match result {
            Ok(_) => Self::Passed,
            Err(error) => {
                let mut causes = error.chain();
                match causes.find_map(|it| it.downcast_ref::<Termination>()) {
                    Some(it) => Self::Ended {
                        reason: it.reason.clone(),
                    },
                    None => Self::Failed {
                        reason: Some(recorded_reason(error)),
                    },
                }
            }
        }
    }

    /// Returns the outcome of a run whose runner itself was ended.
    pub fn interrupted() -> Self {
        Self::Ended {
            reason: "interrupted".to_owned(),
        }
    }
}

impl fmt::Display for ProofOutcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Passed => "passed",
            Self::Failed { .. } => "failed",
            Self::Ended { .. } => "ended",
        })
    }
}

pub fn command(arguments: Arguments) -> Result<()> {
    generated::command(arguments, stale, |root, _| write_page(root))
}

/// Returns the newest run of each proof.
pub fn read(root: &Path) -> Result<Vec<Record>> {
    match fs::read_to_string(root.join(RECORDS)) {
        Ok(text) => parse(&text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).context(RECORDS),
    }
}

/// Notes that a run begins. `record` is what is stored if it is interrupted.
pub fn begin(root: &Path, record: &Record) -> Result<()> {
    let path = root.join(IN_PROGRESS);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let rows = Value::Array(vec![to_json(record)]);
    fs::write(path, rows.to_string()).context(IN_PROGRESS)
}

/// Stores the run that was interrupted, if there is one.
pub fn store_interrupted(root: &Path) -> Result<()> {
    match fs::read_to_string(root.join(IN_PROGRESS)) {
        Ok(text) => {
            // A file that was not written to its end says nothing.
            let records = parse(&text).unwrap_or_default();
            records.into_iter().try_for_each(|it| store(root, it))?;
            end(root)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).context(IN_PROGRESS),
    }
}

/// Notes that the run in progress has ended.
pub fn end(root: &Path) -> Result<()> {
    fs::remove_file(root.join(IN_PROGRESS)).context(IN_PROGRESS)
}

/// Replaces the last run of the proof, and regenerates the page.
pub fn store(root: &Path, record: Record) -> Result<()> {
    let mut records = read(root)?;
    records.retain(|it| it.name != record.name);
    records.push(record);
    records.sort_by(|a, b| a.name.cmp(&b.name));
    let rows: Vec<Value> = records.iter().map(to_json).collect();
    let text = serde_json::to_string_pretty(&rows)?;
    fs::write(root.join(RECORDS), text + "\n").context(RECORDS)?;
    write_page(root)
}

fn write_page(root: &Path) -> Result<()> {
    fs::write(root.join(PAGE), page(&read(root)?)?).context(PAGE)
}

/// Returns the problem if the page does not match the records.
pub fn stale(tree: &Tree) -> Result<Option<String>> {
    let records = parse(tree.text(RECORDS).unwrap_or("[]"))?;
    let is_same = tree.text(PAGE) == Some(page(&records)?.as_str());
    Ok((!is_same).then(|| format!("{PAGE} is stale: run `cargo xtask promises`")))
}

fn to_json(record: &Record) -> Value {
    let mut row = json!({
        "name": record.name,
        "size": record.size,
        "outcome": record.outcome.to_string(),
        "figures": record.figures,
        "date": record.date,
        "commit": record.commit,
        "seconds": record.seconds,
    });
    match &record.outcome {
        ProofOutcome::Ended { reason }
        | ProofOutcome::Failed {
            reason: Some(reason),
        } => row["reason"] = json!(reason),
        ProofOutcome::Failed { reason: None } | ProofOutcome::Passed => {}
    }
    row
}

fn parse(text: &str) -> Result<Vec<Record>> {
    let rows: Vec<Value> = serde_json::from_str(text).context(RECORDS)?;
    let record = |row: &Value| -> Option<Record> {
        let word = |name: &str| Some(row[name].as_str()?.to_owned());
        let figures = row["figures"].as_array()?.iter();
        Some(Record {
            name: word("name")?,
            size: word("size")?,
            figures: figures
                .map(|it| it.as_str().map(str::to_owned))
                .collect::<Option<_>>()?,
            date: word("date")?,
            commit: word("commit")?,
            seconds: row["seconds"].as_u64()?,
            outcome: match row["outcome"].as_str()? {
                "passed" => ProofOutcome::Passed,
                "failed" => ProofOutcome::Failed {
                    reason: word("reason"),
                },
                "ended" => ProofOutcome::Ended {
                    reason: word("reason")?,
                },
                _ => return None,
            },
        })
    };
    rows.iter()
        .map(|row| record(row).with_context(|| format!("{RECORDS}: not a record: {row}")))
        .collect()
}

fn page(records: &[Record]) -> Result<String> {
    let mut out = String::from(
        "# Promises\n\n\
         <!-- Generated by `cargo xtask promises` from proofs.json; do not edit. -->\n\n\
         Every goal with what was asked, what was run at full size, and what is missing. CI runs a\n\
         slice of most proofs on every change; this page shows only runs at full size, failures\n\
         included. `cargo xtask prove NAME` runs a proof and records it here.\n\n\
         Version 0.1.0 is [frozen and not published yet](versioning.md#status-of-010). Proofs that\n\
         were not run yet are run before it is published.\n",
    );
    for goal in GOALS {
        write_goal(&mut out, goal, records)?;
    }
    out.push_str("\n## Other proofs\n\nThese belong to no goal of the list.\n");
    let others = PROOFS
        .iter()
        .filter(|it| !GOALS.iter().any(|goal| goal.proofs.contains(&it.name)));
    for proof in others {
        out.push('\n');
        write_run(&mut out, proof.name, records)?;
    }
    Ok(out)
}

fn write_goal(out: &mut String, goal: &Goal, records: &[Record]) -> Result<()> {
    let Goal {
        id,
        name,
        target: asked,
        proofs,
        missing,
    } = goal;
    writeln!(out, "\n## {id}: {name}\n\n**Target:** {asked}\n")?;
    if proofs.is_empty() {
        writeln!(out, "**Not run:** no proof exists yet.\n")?;
    }
    for proof in *proofs {
        write_run(out, proof, records)?;
    }
    if !proofs.is_empty() {
        out.push('\n');
    }
    writeln!(out, "**Missing:** {missing}")?;
    Ok(())
}

fn write_run(out: &mut String, proof: &str, records: &[Record]) -> Result<()> {
    let Some(it) = records.iter().find(|it| it.name == proof) else {
        writeln!(
            out,
            "- `{proof}`: **not run** at full size since runs are recorded."
        )?;
        return Ok(());
    };
    let (date, commit, minutes) = (&it.date, &it.commit, it.seconds.div_ceil(60));
    let outcome = match &it.outcome {
        ProofOutcome::Passed => "passed".to_owned(),
        ProofOutcome::Failed { reason: None } => "**failed**".to_owned(),
        ProofOutcome::Failed {
            reason: Some(reason),
        } => format!("**failed** ({reason})"),
        ProofOutcome::Ended { reason } => format!("**not run to its end** ({reason})"),
    };
    writeln!(
        out,
        "- `{proof}` {outcome} on {date}, commit `{commit}`, {minutes} min: {}.",
        it.size
    )?;
    for figure in &it.figures {
        writeln!(out, "  - {figure}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str, outcome: ProofOutcome) -> Record {
        Record {
            name: name.to_owned(),
            size: "a thousand".to_owned(),
            figures: vec!["0 lost".to_owned()],
            date: "2026-11-17".to_owned(),
            commit: "abc1234".to_owned(),
            seconds: 61,
            outcome,
        }
    }

    fn failed(reason: Option<&str>) -> ProofOutcome {
        ProofOutcome::Failed {
            reason: reason.map(str::to_owned),
        }
    }

    fn ended(reason: &str) -> ProofOutcome {
        ProofOutcome::Ended {
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn only_a_proof_that_ran_to_its_end_passes_or_fails() {
        let termination = || {
            let reason = "ended by signal 9".to_owned();
            anyhow::Error::new(Termination { reason })
        };
        for (result, expected) in [
            (Ok(()), ProofOutcome::Passed),
            (
                Err(anyhow::anyhow!("lost").context("`rejoin`")),
                failed(Some("`rejoin`: lost")),
            ),
            (Err(termination()), ended("ended by signal 9")),
            (
                Err(termination().context("`speed`").context("a proof")),
                ended("ended by signal 9"),
            ),
        ] {
            assert_eq!(ProofOutcome::of(&result), expected);
        }
    }

    #[test]
    fn an_interrupted_run_is_stored_by_the_next() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        fs::create_dir(root.join("docs")).expect("a folder");
        // None was interrupted.
        store_interrupted(root).expect("nothing to do");
        assert!(read(root).expect("records").is_empty());

        let interrupted = record("rejoin", ProofOutcome::interrupted());
        begin(root, &interrupted).expect("written");
        store_interrupted(root).expect("stored");
        assert_eq!(
            read(root).expect("records"),
            std::slice::from_ref(&interrupted)
        );

        let passed = record("rejoin", ProofOutcome::Passed);
        begin(root, &interrupted).expect("written");
        store(root, passed.clone()).expect("stored");
        end(root).expect("removed");
        store_interrupted(root).expect("nothing to do");
        assert_eq!(read(root).expect("records"), [passed]);
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let records = [
            record("a", ProofOutcome::Passed),
            record("b", failed(Some("2 lost"))),
            record("c", ended("interrupted")),
            record("d", failed(None)),
        ];
        let rows: Vec<Value> = records.iter().map(to_json).collect();
        let text = serde_json::to_string(&rows).expect("JSON");
        assert_eq!(parse(&text).expect("records"), records);
        assert!(parse(r#"[{"name": "half"}]"#).is_err());
        let without_reason = text.replace("reason", "cause");
        assert!(parse(&without_reason).is_err());
    }

    #[test]
    fn failed_ended_and_missing_runs_are_shown() {
        let mut out = String::new();
        let records = [
            record("rejoin", failed(Some("2 lost"))),
            record("nodes", ended("ended by signal 9")),
        ];
        write_run(&mut out, "rejoin", &records).expect("text");
        write_run(&mut out, "nodes", &records).expect("text");
        write_run(&mut out, "soak", &records).expect("text");
        assert_eq!(
            out,
            "- `rejoin` **failed** (2 lost) on 2026-11-17, commit `abc1234`, 2 min: a \
             thousand.\n  - 0 lost\n\
             - `nodes` **not run to its end** (ended by signal 9) on 2026-11-17, commit `abc1234`, \
             2 min: a thousand.\n  - 0 lost\n\
             - `soak`: **not run** at full size since runs are recorded.\n"
        );
    }

    #[test]
    fn goals_name_proofs_that_exist() {
        for goal in GOALS {
            for name in goal.proofs {
                assert!(PROOFS.iter().any(|it| it.name == *name), "{name}");
            }
        }
        assert_eq!(GOALS.len(), 19);
    }
}
