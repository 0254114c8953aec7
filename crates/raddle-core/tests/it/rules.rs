//! Plays every rule file. A rule is a block of indented lines:
//!
//! ```text
//! given    begin · own 1 a · start t1 "hi"
//! when     interrupt t1
//! then     InterruptAccepted client · ModelEnded 1 cancelled · TurnEnded t1 interrupted client
//! pending  nothing
//! status   idle
//! ```
//!
//! `when` and `then` may repeat; `later 5s` advances the clock; `refused` names a refusal. `reads`
//! is the model's context, and `outputs` the outputs in it. `goal` and `queue` are the state of
//! these, and `accounts` the usage of each model. `then` lists all records since the line before
//! it.

use std::fs;
use std::path::{Path, PathBuf};

use raddle_core::{Record, Seq, Thread, Timestamp};

use crate::fixtures;

#[test]
fn every_rule_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/rules");
    let mut files = Vec::new();
    find(&folder, &mut files);
    files.sort();
    let mut wrong = Vec::new();
    let mut rules = 0;
    for file in &files {
        let text = fs::read_to_string(file).expect("a rule file");
        for rule in text.split("\n\n").filter(|part| part.starts_with("    ")) {
            rules += 1;
            if let Err(what) = play(rule) {
                let name = file.strip_prefix(&folder).unwrap_or(file).display();
                wrong.push(format!("{name}:\n{rule}\n{what}\n"));
            }
        }
    }
    assert!(rules > 30, "only {rules} rules were found");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|it| it == "md") {
            files.push(path);
        }
    }
}

/// The thread of a rule, with its records and its clock.
struct RuleCase {
    thread: Thread,
    records: Vec<Record>,
    now: Timestamp,
    /// Records since the last check, formatted.
    new_records: Vec<String>,
}

/// Steps after which a thread is considered to advance for ever.
const STEPS_MAX: usize = 100;

const BEGAN: Timestamp = Timestamp(1_000_000);

impl RuleCase {
    fn apply_all(&mut self, bodies: Vec<raddle_core::RecordBody>) {
        for body in bodies {
            self.new_records.push(fixtures::show(&body, BEGAN));
            let seq = Seq(self.records.len() as u64 + 1);
            let record = Record {
                seq,
                at: self.now,
                body,
            };
            self.thread.apply(&record);
            self.records.push(record);
        }
    }

    fn advance(&mut self) {
        for _ in 0..STEPS_MAX {
            let bodies = self.thread.advance(self.now);
            if bodies.is_empty() {
                return;
            }
            self.apply_all(bodies);
        }
        panic!(
            "the thread does not come to rest: {:?}",
            self.new_records.last()
        );
    }

    fn run(&mut self, line: &str) -> Result<(), String> {
        let command = fixtures::command(line, &self.thread, self.now);
        let (bodies, _) = self
            .thread
            .decide(command, self.now)
            .map_err(|refusal| format!("{refusal:?}"))?;
        self.apply_all(bodies);
        self.advance();
        Ok(())
    }
}

fn play(rule: &str) -> Result<(), String> {
    let mut case = RuleCase {
        thread: Thread::new(),
        records: Vec::new(),
        now: BEGAN,
        new_records: Vec::new(),
    };
    let mut refused = None;
    for line in rule.lines() {
        let line = line.trim();
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        match verb {
            "given" | "and" => {
                for step in rest.split(" · ") {
                    case.run(step)
                        .map_err(|reason| format!("given {step}: refused, {reason}"))?;
                }
                case.new_records.clear();
            }
            "when" => {
                case.new_records.clear();
                refused = case.run(rest).err();
                if let Some(reason) = &refused
                    && !rule.contains("refused")
                {
                    return Err(format!("when {rest}: refused, {reason}"));
                }
            }
            "later" => {
                let seconds: i64 = rest.trim_end_matches('s').parse().expect("seconds");
                case.now = Timestamp(case.now.0 + seconds * 1000);
                case.new_records.clear();
                case.advance();
            }
            "then" => same("then", rest, &case.new_records.join(" · "))?,
            "refused" => {
                let reason = refused.take().unwrap_or_else(|| "nothing".to_owned());
                let word = reason.split([' ', '{', '(']).next().unwrap_or_default();
                same("refused", rest, word)?;
            }
            "pending" => same("pending", rest, &fixtures::pending(&case.thread))?,
            "goal" => same("goal", rest, &fixtures::shown_goal(&case.thread))?,
            "accounts" => same("accounts", rest, &fixtures::accounts(&case.thread))?,
            "queue" => same("queue", rest, &fixtures::shown_queue(&case.thread))?,
            "granted" => {
                let granted: Vec<String> = case.thread.granted().into_iter().collect();
                same("granted", rest, &granted.join(" · "))?;
            }
            "status" => same("status", rest, fixtures::status(&case.thread))?,
            "reads" => same(
                "reads",
                rest,
                &fixtures::model_context(&case.records, &case.thread),
            )?,
            "outputs" => same(
                "outputs",
                rest,
                &fixtures::outputs(&case.records, &case.thread),
            )?,
            other => return Err(format!("no such line: {other}")),
        }
    }
    Ok(())
}

fn same(what: &str, expected: &str, actual: &str) -> Result<(), String> {
    let actual = if actual.is_empty() { "nothing" } else { actual };
    if expected == actual {
        Ok(())
    } else {
        Err(format!("{what}\n  wanted {expected}\n  found  {actual}"))
    }
}
