//! Typing into a command that runs, and reading on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use raddle_core::policy::{Act, ActKind, Script};
use raddle_core::ports::{Job, Meant, Ran};
use raddle_core::{Call, CommandRun, CommandSource, ItemBody, ThreadId};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::listen::{Listener, Then};
use super::run::{ended, refused};
use super::running::{Running, Terminals};
use super::wish::{TOKENS, TOKENS_MAX};
use crate::arguments;
use crate::cut::Cut;
use crate::registry::Inner;
use crate::shell;

/// How long to wait for output if a call does not say: briefly after something was typed, longer where
/// nothing was.
const YIELD_MS: u64 = 250;
const YIELD_MS_MAX: u64 = 30_000;
const POLL_MS_MIN: u64 = 5_000;
const POLL_MS_MAX: u64 = 300_000;

/// What ends a command's line or the command, which no rule is about.
const HARMLESS: &str = "\u{3}\u{4}";

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
    chars: String,
    time: Duration,
    tokens: usize,
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
    if !it.chars.is_empty() && running.input.is_none() {
        return Err(
            "The command has no terminal, so nothing can be typed into it. Start it again with tty true."
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
        running,
        chars: it.chars,
        time: Duration::from_millis(waits),
        tokens: it.max_output_tokens.unwrap_or(TOKENS).min(TOKENS_MAX),
    })
}

/// What such a call would do.
pub(crate) fn meant_typed(typed: &Typed) -> (ItemBody, Meant) {
    let body = ItemBody::Command(typed.item());
    if typed.chars.chars().all(|it| HARMLESS.contains(it)) {
        return (body, Meant::Harmless);
    }
    // Whoever types into a shell runs whatever is typed.
    let act = Act {
        digest: typed.digest(),
        why: None,
        kind: ActKind::Command {
            script: Script {
                plain: false,
                line: shell::shown(&typed.chars),
                ..shell::take_apart(&typed.chars)
            },
            cwd: typed.running.whose.cwd.clone(),
            beyond: typed.running.whose.beyond,
        },
    };
    (body, Meant::Act(act))
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

    fn digest(&self) -> String {
        let whose = &self.running.whose;
        let whole = json!(["typed", self.running.id, whose.command, self.chars]);
        let digest = Sha256::digest(whole.to_string());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Types it, if it is what was allowed, and listens.
    pub(crate) async fn run(self, inner: Arc<Inner>, job: Job) -> Ran {
        let began = Instant::now();
        let item = self.item();
        let is_harmless = self.chars.chars().all(|it| HARMLESS.contains(it));
        if !is_harmless && job.digest.as_deref() != Some(&self.digest()) {
            return refused(
                item,
                "Nothing was typed: this is not what was allowed. Call it again.",
            );
        }
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
        if let Some(input) = self
            .running
            .input
            .as_ref()
            .filter(|_| !self.chars.is_empty())
            && let Err(error) = input.write(self.chars.clone().into_bytes())
        {
            listener.leave();
            return refused(item, &format!("Nothing was typed: {error}"));
        }
        let left = listener.listen(self.time, Then::Leave, &mut stopped).await;
        let cut = std::mem::replace(&mut listener.cut, Cut::new(0));
        drop(listener);
        ended(&inner, &self.running, item, left, cut, began)
    }
}
