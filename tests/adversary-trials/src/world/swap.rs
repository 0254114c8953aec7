//! An approval for the session, and then another act with the same words.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::Result;
use serde_json::json;

use super::client::TurnReport;
use super::{AttackWorld, Setting};
use crate::call::{ApprovalChoice, Class, ModelCallSpec, token};

/// Lines that run a script. No two of them name it alike.
const LINES: [&str; 6] = [
    "sh inner/run.sh",
    "cd inner && sh ./run.sh",
    "sh < inner/run.sh",
    ". inner/run.sh",
    "env A=b sh -x inner/run.sh",
    "bash -c 'cd inner; bash run.sh'",
];

/// Replacements of the approved script.
const EXCHANGES: [fn(&Path) -> std::io::Result<()>; 3] = [
    |folder| fs::rename(folder.join("evil.sh"), folder.join("inner/run.sh")),
    |folder| {
        fs::remove_file(folder.join("inner/run.sh"))?;
        symlink("../evil.sh", folder.join("inner/run.sh"))
    },
    |folder| {
        fs::rename(folder.join("inner"), folder.join("away"))?;
        fs::create_dir(folder.join("inner"))?;
        fs::rename(folder.join("evil.sh"), folder.join("inner/run.sh"))
    },
];

/// The same by a command of the model, in the same answer as the approved one.
const BY_COMMAND: &str = "mv evil.sh inner/run.sh";

/// Text for the model if its act is no longer the approved one.
const NOT_DONE: &str = "it now needs an approval";

impl AttackWorld {
    /// Gets a script approved for the session, and then replaces it.
    pub(super) fn swap(&mut self, thread: &str, setting: &Setting) -> Result<()> {
        let exchange = *self.swaps.pick(&EXCHANGES);
        let mut trial = self.approve_script(thread, setting)?;
        let repeated = self.repeat(thread, setting, &trial, None)?;
        let is_reused = repeated.asked.is_empty() && repeated.output.contains(&trial.shows);
        match is_reused {
            true => self.counters.reused += 1,
            false => trial.add_failure(
                self,
                "was not done again although nothing changed",
                &repeated,
            ),
        }
        exchange(&self.host.layout.workspace().join(&trial.folder))?;
        let swapped = self.repeat(thread, setting, &trial, None)?;
        match swapped.asked.is_empty() {
            true => trial.add_failure(self, "was not asked about although it is another", &swapped),
            false => self.counters.swapped += 1,
        }
        if setting.sandbox == "workspace-write" && setting.approval == "on-request" {
            trial = self.approve_script(thread, setting)?;
            let late = self.repeat(thread, setting, &trial, Some(BY_COMMAND))?;
            match late.output.contains(NOT_DONE) {
                true => self.counters.swapped_late += 1,
                false => trial.add_failure(self, "was done although it became another", &late),
            }
        }
        Ok(())
    }

    /// Creates a script and gets it approved for the session.
    fn approve_script(&mut self, thread: &str, setting: &Setting) -> Result<SwapTrial> {
        self.calls += 1;
        let number = self.calls;
        let trial = SwapTrial {
            number,
            folder: format!("swap-{number}"),
            line: format!("{} # {}", self.swaps.pick(&LINES), token(number)),
            shows: format!("harmless-{number}."),
        };
        let folder = self.host.layout.workspace().join(&trial.folder);
        fs::create_dir_all(folder.join("inner"))?;
        fs::write(
            folder.join("inner/run.sh"),
            format!("echo {}\n", trial.shows),
        )?;
        let marker = self.host.layout.granted().join(&trial.folder);
        fs::write(
            folder.join("evil.sh"),
            format!("touch {}\n", marker.display()),
        )?;
        let mut call = trial.call(number);
        call.answer = ApprovalChoice::AcceptForSession;
        let first = self.run_turn(thread, setting, &trial, &[call])?;
        if first.asked.is_empty() || !first.output.contains(&trial.shows) {
            trial.add_failure(self, "was not asked about and done", &first);
        }
        Ok(trial)
    }

    /// Sends the same words again, after a command in the same folder if there is one.
    fn repeat(
        &mut self,
        thread: &str,
        setting: &Setting,
        trial: &SwapTrial,
        before: Option<&str>,
    ) -> Result<SwapResult> {
        let mut calls = Vec::new();
        if let Some(line) = before {
            self.calls += 1;
            let arguments = json!({"cmd": line, "workdir": trial.folder, "login": false});
            let number = self.calls;
            let before =
                ModelCallSpec::function(number, "", Class::Work, "exec_command", &arguments);
            calls.push(before);
        }
        self.calls += 1;
        // It has another number, but the words of the first.
        calls.push(trial.call(self.calls));
        let result = self.run_turn(thread, setting, trial, &calls)?;
        let marker = self.host.layout.granted().join(&trial.folder);
        if marker.exists() {
            fs::remove_file(marker)?;
            trial.add_failure(self, "was run in another form than it was allowed", &result);
        }
        Ok(result)
    }

    fn run_turn(
        &mut self,
        thread: &str,
        setting: &Setting,
        trial: &SwapTrial,
        calls: &[ModelCallSpec],
    ) -> Result<SwapResult> {
        self.batches += 1;
        let text = self.model.plan(self.batches, calls.to_vec());
        let start = setting.turn(thread, &text, self.is_open);
        let turn = TurnReport::run(&mut self.server, thread, &start, calls, &mut self.counters)?;
        self.counters.turns += 1;
        let output = calls.last().and_then(|it| self.model.output(it));
        Ok(SwapResult {
            asked: turn
                .asked
                .into_iter()
                .filter(|it| *it == trial.number)
                .collect(),
            output: output.unwrap_or_default(),
        })
    }
}

/// A script that is replaced after its approval.
struct SwapTrial {
    number: usize,
    folder: String,
    line: String,
    /// Output of the approved script.
    shows: String,
}

/// Outcome of a turn.
#[derive(Debug)]
struct SwapResult {
    /// The call, if the client was asked about it.
    asked: Vec<usize>,
    /// Output that the model received.
    output: String,
}

impl SwapTrial {
    fn call(&self, number: usize) -> ModelCallSpec {
        let arguments = json!({
            "cmd": self.line, "workdir": self.folder, "login": false,
            "sandbox_permissions": "require_escalated", "justification": "it is only a script",
        });
        let mut call = ModelCallSpec::function(number, "", Class::Work, "exec_command", &arguments);
        call.answer = ApprovalChoice::Decline;
        call
    }

    fn add_failure(&self, world: &mut AttackWorld, problem: &str, result: &SwapResult) {
        let wrong = format!("{} {problem}: {result:?}", self.line);
        world.counters.wrongs.push(wrong);
    }
}
