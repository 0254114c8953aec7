//! Writes to the input of a running command, and reads on.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use raddle_core::policy::approval_digest::{self, InputTarget};
use raddle_core::policy::{Act, ActKind, ParsedScript, UNKNOWN};
use raddle_core::ports::{Authorization, ToolIntent, ToolJob, ToolResult};
use raddle_core::{CommandRun, CommandSource, ItemBody, Settings, ThreadId, ToolCall};
use raddle_sandbox::FileHolds;
use serde::Deserialize;

use super::output_listener::{OnTimeout, OutputListener};
use super::programs::search_path;
use super::request::{TOKENS, TOKENS_MAX, folders, is_confined, subject_digest};
use super::run::{hold, listen_result, refused};
use super::terminals::{RunningCommand, Terminals};
use crate::arguments;
use crate::shell::{self, ApprovalSubject, DigestInput};
use crate::tool_call_error::ToolCallError;
use crate::tool_deps::ToolDeps;
use crate::truncation::TruncatedOutput;

/// Default wait for output: short after input, longer for a call that only polls.
const YIELD_MS: u64 = 250;
const YIELD_MS_MAX: u64 = 30_000;
const POLL_MS_MIN: u64 = 5_000;
const POLL_MS_MAX: u64 = 300_000;

/// Keys that end a line or the command; no rule applies to them.
const HARMLESS: &str = "\u{3}\u{4}";

/// Key that also ends a command without a terminal.
const INTERRUPT: &str = "\u{3}";

#[derive(Deserialize)]
struct WriteStdin {
    session_id: u64,
    #[serde(default)]
    chars: String,
    yield_time_ms: Option<u64>,
    max_output_tokens: Option<usize>,
}

/// Text that a call types into a running command.
pub(crate) struct StdinWrite {
    running: Arc<RunningCommand>,
    /// Text typed earlier that is not yet a complete line.
    typed_line: String,
    chars: String,
    time: Duration,
    tokens: usize,
    /// Id of the call.
    call: String,
}

/// Parses a call, or returns the error text for the model.
pub(crate) fn parse_write(
    terminals: &Terminals,
    thread: ThreadId,
    call: &ToolCall,
) -> Result<StdinWrite, ToolCallError> {
    let it: WriteStdin = arguments::read(call)?;
    let running = terminals.get(thread, it.session_id).ok_or_else(|| {
        ToolCallError::new(format!(
            "No command runs with the session ID {}. It has ended, perhaps with its turn.",
            it.session_id
        ))
    })?;
    if !it.chars.is_empty() && it.chars != INTERRUPT && running.input.is_none() {
        return Err(ToolCallError::new(
            "The command has no terminal, so nothing can be typed into it but \\u0003, which ends it. Start it again \
             with tty true.",
        ));
    }
    if !shell::is_shown_whole(&format!("{}{}", running.typed_line(), it.chars)) {
        return Err(ToolCallError::new(
            "Nothing was typed: it is too long to be shown in full to the user who approves it. Write it to a file, and \
             type less.",
        ));
    }
    let yield_ms = match it.chars.is_empty() {
        true => {
            let yield_ms = it.yield_time_ms.unwrap_or(POLL_MS_MIN);
            yield_ms.clamp(POLL_MS_MIN, POLL_MS_MAX)
        }
        false => {
            let yield_ms = it.yield_time_ms.unwrap_or(YIELD_MS);
            yield_ms.clamp(YIELD_MS, YIELD_MS_MAX)
        }
    };
    Ok(StdinWrite {
        typed_line: running.typed_line(),
        running,
        chars: it.chars,
        time: Duration::from_millis(yield_ms),
        tokens: it.max_output_tokens.unwrap_or(TOKENS).min(TOKENS_MAX),
        call: call.id.clone(),
    })
}

/// Returns the item and the intent of such a call.
pub(crate) fn write_intent(
    settings: &Settings,
    write: &StdinWrite,
    path: Option<OsString>,
    holds: &FileHolds,
) -> (ItemBody, ToolIntent) {
    let body = ItemBody::Command(write.item());
    if write.is_harmless() {
        return (body, ToolIntent::Harmless);
    }
    if let Err(why) = write.refuse_replaceable(settings, path, holds) {
        return (body, ToolIntent::Refused(why.to_string()));
    }
    let subject = write.subject(settings, holds);
    let digest = match subject_digest(subject, write.running.owner.beyond, &write.call) {
        Ok(digest) => digest,
        Err(why) => return (body, ToolIntent::Refused(why.to_string())),
    };
    let act = Act {
        digest,
        reason: None,
        kind: write.kind(),
    };
    (body, ToolIntent::Act(act))
}

/// Parses the input in two ways: as a continuation of the typed line, and as a separate line
/// wherever a key may have deleted the text before it. An incomplete line may become any command.
fn script(begun: &str, chars: &str) -> ParsedScript {
    let whole = format!("{begun}{}", chars.replace('\r', "\n"));
    let anew = chars.replace(|it: char| it.is_control() && it != '\t', "\n");
    let mut script = shell::parse_line(&whole);
    script.commands.extend(shell::parse_line(&anew).commands);
    // Keys for completion or history can produce any line.
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

/// Returns the text after the last line end. A line end after a backslash does not count.
fn unfinished(text: &str) -> &str {
    let mut ends = text.rmatch_indices('\n').map(|(at, _)| at);
    let end = ends.find(|at| !text[..*at].ends_with('\\'));
    end.map_or(text, |at| &text[at + 1..])
}

impl StdinWrite {
    fn item(&self) -> CommandRun {
        let owner = &self.running.owner;
        CommandRun {
            command: owner.command.clone(),
            cwd: owner.cwd.clone(),
            source: CommandSource::Typed,
            terminal: Some(self.running.id.to_string()),
            ..CommandRun::default()
        }
    }

    fn is_harmless(&self) -> bool {
        self.chars.chars().all(|it| HARMLESS.contains(it))
    }

    /// Rejects names of programs that sandboxed commands can replace, if the input goes outside the
    /// sandbox.
    fn refuse_replaceable(
        &self,
        settings: &Settings,
        path: Option<OsString>,
        holds: &FileHolds,
    ) -> Result<(), ToolCallError> {
        if !self.running.owner.beyond || !is_confined(settings) {
            return Ok(());
        }
        let commands = script(&self.typed_line, &self.chars).commands.into_iter();
        let names = commands.filter_map(|it| it.into_iter().next());
        let names: Vec<String> = names.collect();
        search_path(settings, &names, path, holds).map(|_| ())
    }

    /// Returns the act that rules are matched against: text typed into a shell is a command.
    fn kind(&self) -> ActKind {
        let owner = &self.running.owner;
        ActKind::Command {
            script: script(&self.typed_line, &self.chars),
            cwd: owner.cwd.clone(),
            beyond: owner.beyond,
        }
    }

    /// Returns the subject of an approval. It binds the text to this command, not to another one
    /// with the same number after a restart. It may block on the disk.
    fn subject(&self, settings: &Settings, holds: &FileHolds) -> ApprovalSubject {
        let RunningCommand { id, owner, .. } = &*self.running;
        let target = InputTarget {
            process: *id,
            item: &owner.item,
            turn: &owner.turn,
            command: &owner.command,
            beyond: owner.beyond,
            typed_line: &self.typed_line,
        };
        shell::approval_subject(DigestInput {
            words: std::slice::from_ref(&self.chars),
            commands: &script(&self.typed_line, &self.chars).commands,
            cwd: &owner.cwd,
            environment: &BTreeMap::new(),
            scope: &approval_digest::input_scope(target),
            folders: &self.folders(settings),
            written: Some(holds.written()),
            call: &self.call,
        })
    }

    /// Returns the [`folders`] of the running command.
    fn folders(&self, settings: &Settings) -> Vec<PathBuf> {
        let owner = &self.running.owner;
        folders(settings, Path::new(&owner.cwd), owner.beyond)
    }

    /// Types the text if it is exactly what was authorised, and listens.
    pub(crate) async fn run(self, inner: Arc<ToolDeps>, job: ToolJob) -> ToolResult {
        let began = Instant::now();
        let item = self.item();
        let is_harmless = self.is_harmless();
        if let Err(why) = inner.terminals.check_sandboxed(&self.running.owner)
            && !is_harmless
        {
            return refused(item, &format!("Nothing was typed: {why}"));
        }
        let is_unconfined = self.running.owner.beyond || !is_confined(&job.settings);
        let is_exact = matches!(job.authorization, Some(Authorization::Exactly(_)));
        let is_judged = is_exact && !is_harmless;
        let is_held = is_unconfined && is_judged;
        let holds = inner.sandbox.holds().clone();
        let paths_task = tokio::task::spawn_blocking(move || {
            let paths = is_held.then(|| self.subject(&job.settings, &holds).paths);
            (paths, self, job)
        });
        let Ok((paths, write, job)) = paths_task.await else {
            return refused(item, "Nothing was typed: parsing the input failed.");
        };
        let file_hold = match paths {
            Some(paths) => match hold(&inner.sandbox, &write.chars, paths).await {
                Ok(file_hold) => Some(file_hold),
                Err(why) => return refused(item, &format!("Nothing was typed: {why}")),
            },
            None => None,
        };
        let (path, holds) = (inner.path.get().await, inner.sandbox.holds().clone());
        let check_task = tokio::task::spawn_blocking(move || {
            let subject = is_judged.then(|| write.subject(&job.settings, &holds));
            // No approval covers text without a digest.
            let (digest, paths) = subject.map_or_else(Default::default, |it| {
                (it.digest.unwrap_or_default(), it.paths)
            });
            let is_held = file_hold.as_ref().is_none_or(|it| it.covers(&paths))
                && write
                    .refuse_replaceable(&job.settings, path, &holds)
                    .is_ok();
            let is_allowed = is_harmless || is_held && job.allows(&write.kind(), || digest);
            (is_allowed, write, job, file_hold)
        });
        let Ok((true, write, job, file_hold)) = check_task.await else {
            return refused(
                item,
                "Nothing was typed: this is not what was allowed. Call it again.",
            );
        };
        // The command may read the text at any time until it exits.
        write.running.add_hold(file_hold);
        write.write_unchecked(inner, job, item, began).await
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
        let write_result = match &self.running.input {
            _ if self.chars.is_empty() => Ok(()),
            Some(input) => input.write(self.chars.clone().into_bytes()),
            None => {
                self.running.control.end();
                Ok(())
            }
        };
        if let Err(error) = write_result {
            listener.detach();
            return refused(item, &format!("Nothing was typed: {error}"));
        }
        if !self.is_harmless() {
            let whole = format!("{}{}", self.typed_line, self.chars.replace('\r', "\n"));
            self.running.set_typed_line(unfinished(&whole));
        }
        let end = listener
            .listen(self.time, OnTimeout::Detach, &mut stopped)
            .await;
        let output = std::mem::replace(&mut listener.output, TruncatedOutput::new(0));
        drop(listener);
        listen_result(&inner, &self.running, item, end, output, began)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each case: the text typed before, the text typed now, and a command that must be in the
    /// result; `?` is any.
    #[test]
    fn a_line_typed_in_pieces_is_judged_as_a_whole() {
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
            let parsed = script(begun, chars);
            let expected = expected.replace('?', &UNKNOWN.to_string());
            let expected: Vec<String> = expected.split(' ').map(str::to_owned).collect();
            let about = format!("{begun:?} and {chars:?}: {parsed:?}");
            assert!(parsed.commands.contains(&expected), "{about}");
            assert!(!parsed.plain, "{about}");
        }
        let whole = script("", "ls -la\n");
        let ls = vec!["ls".to_owned(), "-la".to_owned()];
        assert_eq!(whole.commands, [ls.clone(), ls]);
    }

    #[test]
    fn incomplete_lines_are_kept() {
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
