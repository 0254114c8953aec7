//! Typing into a command that runs, and reading on.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use raddle_core::policy::{Act, ActKind, Script, UNKNOWN};
use raddle_core::ports::{Job, Leave, Meant, Ran};
use raddle_core::{Call, CommandRun, CommandSource, ItemBody, Settings, ThreadId};
use raddle_sandbox::FileHolds;
use serde::Deserialize;
use serde_json::json;

use super::listen::{Listener, Then};
use super::programs::search_path;
use super::run::{ended, hold, refused};
use super::running::{Running, Terminals};
use super::wish::{TOKENS, TOKENS_MAX, folders, is_fenced, to_ask_about};
use crate::arguments;
use crate::cut::Cut;
use crate::registry::Inner;
use crate::shell::{self, Digested, UnseenFiles};

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
pub(crate) struct Typed {
    running: Arc<Running>,
    /// What was typed before, and is no whole line yet.
    begun: String,
    chars: String,
    time: Duration,
    tokens: usize,
    /// The call that types it.
    call: String,
}

/// What a call wants to type, or what the model is told.
pub(crate) fn typed(terminals: &Terminals, thread: ThreadId, call: &Call) -> Result<Typed, String> {
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
    if !shell::is_shown_whole(&format!("{}{}", running.begun(), it.chars)) {
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
    Ok(Typed {
        begun: running.begun(),
        running,
        chars: it.chars,
        time: Duration::from_millis(waits),
        tokens: it.max_output_tokens.unwrap_or(TOKENS).min(TOKENS_MAX),
        call: call.id.clone(),
    })
}

/// What such a call would do.
pub(crate) fn meant_typed(
    settings: &Settings,
    typed: &Typed,
    path: Option<OsString>,
    holds: &FileHolds,
) -> (ItemBody, Meant) {
    let body = ItemBody::Command(typed.item());
    if typed.is_harmless() {
        return (body, Meant::Harmless);
    }
    if let Err(why) = typed.refuse_exchangeable(settings, path, holds) {
        return (body, Meant::Refused(why));
    }
    let digest = typed.digest(settings, holds);
    let digest = match to_ask_about(digest, typed.running.whose.beyond, &typed.call) {
        Ok(digest) => digest,
        Err(why) => return (body, Meant::Refused(why)),
    };
    let act = Act {
        digest,
        why: None,
        kind: typed.kind(),
    };
    (body, Meant::Act(act))
}

/// What it may come to: as more of the line that was begun, and as a line of its own wherever a key may have
/// taken back what stood before. What is no whole line yet may become any command.
fn script(begun: &str, chars: &str) -> Script {
    let whole = format!("{begun}{}", chars.replace('\r', "\n"));
    let anew = chars.replace(|it: char| it.is_control() && it != '\t', "\n");
    let mut script = shell::take_apart(&whole);
    script.commands.extend(shell::take_apart(&anew).commands);
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
    Script {
        plain: false,
        line: shell::shown(&whole),
        ..script
    }
}

/// What stands behind the last end of a line. A line that goes on in the next has none.
fn unfinished(text: &str) -> &str {
    let mut ends = text.rmatch_indices('\n').map(|(at, _)| at);
    let end = ends.find(|at| !text[..*at].ends_with('\\'));
    end.map_or(text, |at| &text[at + 1..])
}

impl Typed {
    fn item(&self) -> CommandRun {
        let whose = &self.running.whose;
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
        if !self.running.whose.beyond || !is_fenced(settings) {
            return Ok(());
        }
        let commands = script(&self.begun, &self.chars).commands.into_iter();
        let names = commands.filter_map(|it| it.into_iter().next());
        let names: Vec<String> = names.collect();
        search_path(settings, &names, path, holds).map(|_| ())
    }

    /// What rules are about: whoever types into a shell runs whatever is typed.
    fn kind(&self) -> ActKind {
        let whose = &self.running.whose;
        ActKind::Command {
            script: script(&self.begun, &self.chars),
            cwd: whose.cwd.clone(),
            beyond: whose.beyond,
        }
    }

    /// What makes this act this one and no other: it is typed into this command, and into none that has its
    /// number after a restart. It may wait for a disk.
    fn digest(&self, settings: &Settings, holds: &FileHolds) -> Result<String, UnseenFiles> {
        let Running { id, whose, .. } = &*self.running;
        let sandbox = json!([
            "typed",
            id,
            whose.item,
            whose.turn,
            whose.command,
            whose.beyond,
            self.begun
        ]);
        shell::digest(Digested {
            words: std::slice::from_ref(&self.chars),
            commands: &script(&self.begun, &self.chars).commands,
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
        let whose = &self.running.whose;
        folders(settings, Path::new(&whose.cwd), whose.beyond)
    }

    /// The files that a yes to it is about.
    fn paths(&self, settings: &Settings, holds: &FileHolds) -> Vec<PathBuf> {
        shell::paths(Digested {
            words: std::slice::from_ref(&self.chars),
            commands: &script(&self.begun, &self.chars).commands,
            cwd: &self.running.whose.cwd,
            environment: &BTreeMap::new(),
            sandbox: "",
            folders: &self.folders(settings),
            written: Some(holds.written()),
            call: "",
        })
    }

    /// Types it, if it is what was allowed, and listens.
    pub(crate) async fn run(self, inner: Arc<Inner>, job: Job) -> Ran {
        let began = Instant::now();
        let item = self.item();
        let is_harmless = self.is_harmless();
        if let Some(why) = inner.terminals.in_the_way(&self.running.whose)
            && !is_harmless
        {
            return refused(item, &format!("Nothing was typed: {why}"));
        }
        let is_unfenced = self.running.whose.beyond || !is_fenced(&job.settings);
        let is_exact = matches!(job.leave, Some(Leave::Exactly(_)));
        let is_held = is_unfenced && is_exact && !is_harmless;
        let holds = inner.fences.holds().clone();
        let listed = tokio::task::spawn_blocking(move || {
            let paths = is_held.then(|| self.paths(&job.settings, &holds));
            (paths, self, job)
        });
        let Ok((paths, typed, job)) = listed.await else {
            return refused(item, "Nothing was typed: what it comes to cannot be read.");
        };
        let held = match paths {
            Some(paths) => match hold(&inner.fences, &typed.chars, paths).await {
                Ok(held) => Some(held),
                Err(why) => return refused(item, &format!("Nothing was typed: {why}")),
            },
            None => None,
        };
        let (path, holds) = (inner.path.get().await, inner.fences.holds().clone());
        let looked = tokio::task::spawn_blocking(move || {
            let is_held = held
                .as_ref()
                .is_none_or(|it| it.covers(&typed.paths(&job.settings, &holds)))
                && typed
                    .refuse_exchangeable(&job.settings, path, &holds)
                    .is_ok();
            let digest = || typed.digest(&job.settings, &holds).unwrap_or_default();
            let may = is_harmless || is_held && job.may(&typed.kind(), digest);
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
        typed.go(inner, job, item, began).await
    }

    async fn go(self, inner: Arc<Inner>, job: Job, item: CommandRun, began: Instant) -> Ran {
        let Job {
            item: shown,
            reports,
            mut stopped,
            ..
        } = job;
        let listener = Listener::new(self.running.clone(), &shown.id, &*reports, self.tokens);
        let Some(mut listener) = listener else {
            return refused(item, "Another call listens to this command. Wait for it.");
        };
        let typed = match &self.running.input {
            _ if self.chars.is_empty() => Ok(()),
            Some(input) => input.write(self.chars.clone().into_bytes()),
            None => {
                self.running.leash.end();
                Ok(())
            }
        };
        if let Err(error) = typed {
            listener.leave();
            return refused(item, &format!("Nothing was typed: {error}"));
        }
        if !self.is_harmless() {
            let whole = format!("{}{}", self.begun, self.chars.replace('\r', "\n"));
            self.running.begin(unfinished(&whole));
        }
        let left = listener.listen(self.time, Then::Leave, &mut stopped).await;
        let cut = std::mem::replace(&mut listener.cut, Cut::new(0));
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
