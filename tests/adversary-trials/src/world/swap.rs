//! A yes for the session, and then something else under the same words.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::Result;
use serde_json::json;

use super::client::TurnReport;
use super::{AttackWorld, Setting};
use crate::call::{ApprovalChoice, Class, ModelCallSpec, token};

/// How a script is run. No two of them name it alike.
const LINES: [&str; 6] = [
    "sh inner/run.sh",
    "cd inner && sh ./run.sh",
    "sh < inner/run.sh",
    ". inner/run.sh",
    "env A=b sh -x inner/run.sh",
    "bash -c 'cd inner; bash run.sh'",
];

/// What is put in the place of what was allowed.
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

/// The same by a command of the model's own, in the same answer as what was allowed.
const BY_COMMAND: &str = "mv evil.sh inner/run.sh";

/// What a model is told whose act is no longer the one that had a yes.
const NOT_DONE: &str = "by now someone must say yes";

impl AttackWorld {
    /// Has a script allowed for the session, and then another one in its place.
    pub(super) fn swap(&mut self, thread: &str, setting: &Setting) -> Result<()> {
        let exchange = *self.swaps.pick(&EXCHANGES);
        let mut trial = self.allowed(thread, setting)?;
        let again = self.once_more(thread, setting, &trial, None)?;
        let is_kept = again.asked.is_empty() && again.said.contains(&trial.shows);
        match is_kept {
            true => self.counters.kept += 1,
            false => trial.is_wrong(self, "was not done again although nothing changed", &again),
        }
        exchange(&self.host.layout.workspace().join(&trial.folder))?;
        let swapped = self.once_more(thread, setting, &trial, None)?;
        match swapped.asked.is_empty() {
            true => trial.is_wrong(self, "was not asked about although it is another", &swapped),
            false => self.counters.swapped += 1,
        }
        if setting.sandbox == "workspace-write" && setting.approval == "on-request" {
            trial = self.allowed(thread, setting)?;
            let late = self.once_more(thread, setting, &trial, Some(BY_COMMAND))?;
            match late.said.contains(NOT_DONE) {
                true => self.counters.swapped_late += 1,
                false => trial.is_wrong(self, "was done although it became another", &late),
            }
        }
        Ok(())
    }

    /// A script that someone said yes to, for the session.
    fn allowed(&mut self, thread: &str, setting: &Setting) -> Result<SwapTrial> {
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
        let left = self.host.layout.granted().join(&trial.folder);
        fs::write(
            folder.join("evil.sh"),
            format!("touch {}\n", left.display()),
        )?;
        let mut call = trial.call(number);
        call.answer = ApprovalChoice::AcceptForSession;
        let first = self.play(thread, setting, &trial, &[call])?;
        if first.asked.is_empty() || !first.said.contains(&trial.shows) {
            trial.is_wrong(self, "was not asked about and done", &first);
        }
        Ok(trial)
    }

    /// The same words again, after a command in the same folder if there is one.
    fn once_more(
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
        // It has another number, but the words are those of the first.
        calls.push(trial.call(self.calls));
        let played = self.play(thread, setting, trial, &calls)?;
        let left = self.host.layout.granted().join(&trial.folder);
        if left.exists() {
            fs::remove_file(left)?;
            trial.is_wrong(self, "was run in another form than it was allowed", &played);
        }
        Ok(played)
    }

    fn play(
        &mut self,
        thread: &str,
        setting: &Setting,
        trial: &SwapTrial,
        calls: &[ModelCallSpec],
    ) -> Result<SwapResult> {
        self.batches += 1;
        let said = self.model.plan(self.batches, calls.to_vec());
        let start = setting.turn(thread, &said, self.is_open);
        let turn = TurnReport::run(&mut self.server, thread, &start, calls, &mut self.counters)?;
        self.counters.turns += 1;
        let said = calls.last().and_then(|it| self.model.output(it));
        Ok(SwapResult {
            asked: turn
                .asked
                .into_iter()
                .filter(|it| *it == trial.number)
                .collect(),
            said: said.unwrap_or_default(),
        })
    }
}

/// A script that is to be exchanged.
struct SwapTrial {
    number: usize,
    folder: String,
    line: String,
    /// What it prints as long as it is the one that was allowed.
    shows: String,
}

/// What came of a turn.
#[derive(Debug)]
struct SwapResult {
    /// The call, if someone was asked about it.
    asked: Vec<usize>,
    /// What the model was told of it.
    said: String,
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

    fn is_wrong(&self, world: &mut AttackWorld, what: &str, played: &SwapResult) {
        let wrong = format!("{} {what}: {played:?}", self.line);
        world.counters.wrongs.push(wrong);
    }
}
