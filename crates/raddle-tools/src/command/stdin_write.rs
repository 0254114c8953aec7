//! Typing into a command that runs, and reading on.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use raddle_core::policy::{Act, ActKind, ParsedScript, UNKNOWN};
use raddle_core::ports::{Authorization, ToolIntent, ToolJob, ToolResult};
use raddle_core::{CommandRun, CommandSource, ItemBody, Settings, ThreadId, ToolCall};
use raddle_sandbox::FileHolds;
use serde::Deserialize;
use serde_json::json;

use super::output_listener::{OnTimeout, OutputListener};
use super::programs::search_path;
use super::request::{TOKENS, TOKENS_MAX, folders, is_confined, to_ask_about};
use super::run::{ended, hold, refused};
use super::terminals::{RunningCommand, Terminals};
use crate::arguments;
use crate::registry::ToolDeps;
use crate::shell::{self, ApprovalSubject, DigestInput};
use crate::truncation::TruncatedOutput;

/// How long to wait for output if a call does not say: briefly after something was typed, longer where
/// nothing was.
const YIELD_MS: u64 = 250;
const YIELD_MS_MAX: u64 = 30_000;
const POLL_MS_MIN: u64 = 5_000;
const POLL_MS_MAX: u64 = 300_000;

/// What ends a command's line or the command, which no rule is about.
const HARMLESS: &str = "\u{3}\u{4}";

/// What ends also a command that has no terminal.
const INTERRUPT: &str = "\u{3}";

#[derive(Deserialize)]
struct WriteStdin {
    session_id: u64,
    #[serde(default)]
    chars: String,
    yield_time_ms: Option<u64>,
    max_output_tokens: Option<usize>,
}

/// What a call types into which command.
pub(crate) struct StdinWrite {
    running: Arc<RunningCommand>,
    /// What was typed before, and is no whole line yet.
    typed_line: String,
    chars: String,
    time: Duration,
    tokens: usize,
    /// The call that types it.
    call: String,
}

/// What a call wants to type, or what the model is told.
pub(crate) fn parse_write(
    terminals: &Terminals,
    thread: ThreadId,
    call: &ToolCall,
) -> Result<StdinWrite, String> {
    let it: WriteStdin = arguments::read(call)?;
    let running = terminals.get(thread, it.session_id).ok_or_else(|| {
        format!(
            "No command runs with the session ID {}. It has ended, perhaps with its turn.",
            it.session_id
        )
    })?;
    if !it.chars.is_empty() && it.chars != INTERRUPT && running.input.is_none() {
        return Err(
            "The command has no terminal, so nothing can be typed into it but \\u0003, which ends it. Start it again \
             with tty true."
                .to_owned(),
        );
    }
    if !shell::is_shown_whole(&format!("{}{}", running.typed_line(), it.chars)) {
        return Err(
            "Nothing was typed: it is too long to be shown whole to whoever is asked about it. Write it to a file, and \
             type less."
                .to_owned(),
        );
    }
    let waits = match it.chars.is_empty() {
        true => {
            let waits = it.yield_time_ms.unwrap_or(POLL_MS_MIN);
            waits.clamp(POLL_MS_MIN, POLL_MS_MAX)
        }
        false => {
            let waits = it.yield_time_ms.unwrap_or(YIELD_MS);
            waits.clamp(YIELD_MS, YIELD_MS_MAX)
        }
    };
    Ok(StdinWrite {
        typed_line: running.typed_line(),
        running,
        chars: it.chars,
        time: Duration::from_millis(waits),
        tokens: it.max_output_tokens.unwrap_or(TOKENS).min(TOKENS_MAX),
        call: call.id.clone(),
    })
}

/// What such a call would do.
pub(crate) fn write_intent(
    settings: &Settings,
    typed: &StdinWrite,
    path: Option<OsString>,
    holds: &FileHolds,
) -> (ItemBody, ToolIntent) {
    let body = ItemBody::Command(typed.item());
    if typed.is_harmless() {
        return (body, ToolIntent::Harmless);
    }
    if let Err(why) = typed.refuse_exchangeable(settings, path, holds) {
        return (body, ToolIntent::Refused(why));
    }
    let subject = typed.subject(settings, holds);
    let digest = match to_ask_about(subject, typed.running.owner.beyond, &typed.call) {
        Ok(digest) => digest,
        Err(why) => return (body, ToolIntent::Refused(why)),
    };
    let act = Act {
        digest,
        why: None,
        kind: typed.kind(),
    };
    (body, ToolIntent::Act(act))
}

/// What it may come to: as more of the line that was begun, and as a line of its own wherever a key may have
/// taken back what stood before. What is no whole line yet may become any command.
fn script(begun: &str, chars: &str) -> ParsedScript {
    let whole = format!("{begun}{}", chars.replace('\r', "\n"));
    let anew = chars.replace(|it: char| it.is_control() && it != '\t', "\n");
    let mut script = shell::parse_line(&whole);
    script.commands.extend(shell::parse_line(&anew).commands);
    // Keys that complete a line, or call back an old one, make it any.
    let is_key = |it: char| it.is_control() && !"\r\n\u{3}\u{4}".contains(it);
    let is_recalled = whole
        .lines()
        .chain(anew.lines())
        .any(|it| it.starts_with('^'));
    let is_edited = chars.contains(is_key) || whole.contains('!') || is_recalled;
    if is_edited || !unfinished(&whole).is_empty() {
        script.commands.push(vec![UNKNOWN.to_string()]);
    }
    ParsedScript {
        plain: false,
        line: shell::display_line(&whole),
        ..script
    }
}

/// What stands behind the last end of a line. A line that goes on in the next has none.
fn unfinished(text: &str) -> &str {
    let mut ends = text.rmatch_indices('\n').map(|(at, _)| at);
    let end = ends.find(|at| !text[..*at].ends_with('\\'));
    end.map_or(text, |at| &text[at + 1..])
}

impl StdinWrite {
    fn item(&self) -> CommandRun {
        let whose = &self.running.owner;
        CommandRun {
            command: whose.command.clone(),
            cwd: whose.cwd.clone(),
            source: CommandSource::Typed,
            terminal: Some(self.running.id.to_string()),
            ..CommandRun::default()
        }
    }

    fn is_harmless(&self) -> bool {
        self.chars.chars().all(|it| HARMLESS.contains(it))
    }

    /// Refuses names of programs that sandboxed commands can exchange, where they are typed outside the sandbox.
    fn refuse_exchangeable(
        &self,
        settings: &Settings,
        path: Option<OsString>,
        holds: &FileHolds,
    ) -> Result<(), String> {
        if !self.running.owner.beyond || !is_confined(settings) {
            return Ok(());
        }
        let commands = script(&self.typed_line, &self.chars).commands.into_iter();
        let names = commands.filter_map(|it| it.into_iter().next());
        let names: Vec<String> = names.collect();
        search_path(settings, &names, path, holds).map(|_| ())
    }

    /// What rules are about: whoever types into a shell runs whatever is typed.
    fn kind(&self) -> ActKind {
        let whose = &self.running.owner;
        ActKind::Command {
            script: script(&self.typed_line, &self.chars),
            cwd: whose.cwd.clone(),
            beyond: whose.beyond,
        }
    }

    /// What makes this act this one and no other: it is typed into this command, and into none that has its
    /// number after a restart. It may wait for a disk.
    fn subject(&self, settings: &Settings, holds: &FileHolds) -> ApprovalSubject {
        let RunningCommand {
            id, owner: whose, ..
        } = &*self.running;
        let sandbox = json!([
            "typed",
            id,
            whose.item,
            whose.turn,
            whose.command,
            whose.beyond,
            self.typed_line
        ]);
        shell::approval_subject(DigestInput {
            words: std::slice::from_ref(&self.chars),
            commands: &script(&self.typed_line, &self.chars).commands,
            cwd: &whose.cwd,
            environment: &BTreeMap::new(),
            sandbox: &sandbox.to_string(),
            folders: &self.folders(settings),
            written: Some(holds.written()),
            call: &self.call,
        })
    }

    /// See [`folders`].
    fn folders(&self, settings: &Settings) -> Vec<PathBuf> {
        let whose = &self.running.owner;
        folders(settings, Path::new(&whose.cwd), whose.beyond)
    }

    /// Types it, if it is what was allowed, and listens.
    pub(crate) async fn run(self, inner: Arc<ToolDeps>, job: ToolJob) -> ToolResult {
        let began = Instant::now();
        let item = self.item();
        let is_harmless = self.is_harmless();
        if let Some(why) = inner.terminals.sandboxed_conflict(&self.running.owner)
            && !is_harmless
        {
            return refused(item, &format!("Nothing was typed: {why}"));
        }
        let is_unfenced = self.running.owner.beyond || !is_confined(&job.settings);
        let is_exact = matches!(job.authorization, Some(Authorization::Exactly(_)));
        let is_judged = is_exact && !is_harmless;
        let is_held = is_unfenced && is_judged;
        let holds = inner.sandbox.holds().clone();
        let listed = tokio::task::spawn_blocking(move || {
            let paths = is_held.then(|| self.subject(&job.settings, &holds).paths);
            (paths, self, job)
        });
        let Ok((paths, typed, job)) = listed.await else {
            return refused(item, "Nothing was typed: what it comes to cannot be read.");
        };
        let held = match paths {
            Some(paths) => match hold(&inner.sandbox, &typed.chars, paths).await {
                Ok(held) => Some(held),
                Err(why) => return refused(item, &format!("Nothing was typed: {why}")),
            },
            None => None,
        };
        let (path, holds) = (inner.path.get().await, inner.sandbox.holds().clone());
        let looked = tokio::task::spawn_blocking(move || {
            let subject = is_judged.then(|| typed.subject(&job.settings, &holds));
            // No approval is for a text without a digest.
            let (digest, paths) = subject.map_or_else(Default::default, |it| {
                (it.digest.unwrap_or_default(), it.paths)
            });
            let is_held = held.as_ref().is_none_or(|it| it.covers(&paths))
                && typed
                    .refuse_exchangeable(&job.settings, path, &holds)
                    .is_ok();
            let may = is_harmless || is_held && job.allows(&typed.kind(), || digest);
            (may, typed, job, held)
        });
        let Ok((true, typed, job, held)) = looked.await else {
            return refused(
                item,
                "Nothing was typed: this is not what was allowed. Call it again.",
            );
        };
        // What is typed may be read at any time until the command is over.
        typed.running.keep(held);
        typed.write_unchecked(inner, job, item, began).await
    }

    async fn write_unchecked(
        self,
        inner: Arc<ToolDeps>,
        job: ToolJob,
        item: CommandRun,
        began: Instant,
    ) -> ToolResult {
        let ToolJob {
            item: shown,
            reports,
            mut stopped,
            ..
        } = job;
        let listener = OutputListener::new(self.running.clone(), &shown.id, &*reports, self.tokens);
        let Some(mut listener) = listener else {
            return refused(item, "Another call listens to this command. Wait for it.");
        };
        let typed = match &self.running.input {
            _ if self.chars.is_empty() => Ok(()),
            Some(input) => input.write(self.chars.clone().into_bytes()),
            None => {
                self.running.control.end();
                Ok(())
            }
        };
        if let Err(error) = typed {
            listener.detach();
            return refused(item, &format!("Nothing was typed: {error}"));
        }
        if !self.is_harmless() {
            let whole = format!("{}{}", self.typed_line, self.chars.replace('\r', "\n"));
            self.running.set_typed_line(unfinished(&whole));
        }
        let left = listener
            .listen(self.time, OnTimeout::Detach, &mut stopped)
            .await;
        let cut = std::mem::replace(&mut listener.output, TruncatedOutput::new(0));
        drop(listener);
        ended(&inner, &self.running, item, left, cut, began)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was typed before, what is typed now, and a command that is found in it; `?` is any.
    #[test]
    fn a_line_is_judged_whole_however_it_is_typed() {
        let cases = [
            ("", "git push\n", "git push"),
            ("", "git push\r", "git push"),
            ("", "git push", "git push"),
            ("", "git pu", "?"),
            ("gi", "t push\n", "git push"),
            ("git pu", "sh\n", "git push"),
            ("git \\\n", "push\n", "git push"),
            ("", "ls\ngi", "?"),
            ("echo ", "git push\n", "git push"),
            ("", "echo \u{15}git push\n", "git push"),
            ("", "echo \u{3}git push\n", "git push"),
            ("", "!!\n", "?"),
            ("!", "gi\n", "?"),
            ("", "^echo ^^\n", "?"),
            ("^ec", "ho ^^\n", "?"),
            ("", "ls\r^echo ^^\r", "?"),
            ("echo ", "\u{15}^echo ^^\n", "?"),
        ];
        for (begun, chars, expected) in cases {
            let found = script(begun, chars);
            let expected = expected.replace('?', &UNKNOWN.to_string());
            let expected: Vec<String> = expected.split(' ').map(str::to_owned).collect();
            let about = format!("{begun:?} and {chars:?}: {found:?}");
            assert!(found.commands.contains(&expected), "{about}");
            assert!(!found.plain, "{about}");
        }
        let whole = script("", "ls -la\n");
        let ls = vec!["ls".to_owned(), "-la".to_owned()];
        assert_eq!(whole.commands, [ls.clone(), ls]);
    }

    #[test]
    fn what_is_no_whole_line_is_kept() {
        let cases = [
            ("", ""),
            ("ls", "ls"),
            ("ls\n", ""),
            ("ls\ngit", "git"),
            ("git \\\npush", "git \\\npush"),
            ("a\n\nb", "b"),
        ];
        for (text, expected) in cases {
            assert_eq!(unfinished(text), expected, "{text:?}");
        }
    }
}
