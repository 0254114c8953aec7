//! One command from its start until its call is over.

use std::sync::Arc;
use std::time::Instant;

use raddle_core::ports::{Job, Ran};
use raddle_core::{CommandRun, CommandSource, ItemBody, ItemStatus, Output, Settings};
use raddle_sandbox::{Fences, Inside, Launch, Size, Stdio, environment};

use super::fence::{held, sees};
use super::listen::{Left, Listener, Then};
use super::running::{Running, Whose};
use super::wish::{Time, Wish};
use crate::cut::Cut;
use crate::registry::Inner;

/// What commands find in their environment besides what they inherit: no pager waits for a key, and nothing
/// is coloured that a model reads.
const VARIABLES: [(&str, &str); 4] = [
    ("NO_COLOR", "1"),
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
];

impl Wish {
    /// Runs it, if it is what was allowed.
    pub(crate) async fn run(self, inner: Arc<Inner>, job: Job) -> Ran {
        let item = self.item();
        // First this: whatever runs beside it could change what the digest is of.
        if let Some(why) = inner.terminals.in_the_way(&self.whose(&job, &item)) {
            return refused(item, &format!("This was not run: {why}"));
        }
        let looked = tokio::task::spawn_blocking(move || {
            let may = job.may(&self.kind(), || self.digest(&job.settings));
            (may, self, job)
        });
        let Ok((may, wish, job)) = looked.await else {
            return refused(item, "This was not run: what it is made of cannot be read.");
        };
        if !may {
            return refused(
                item,
                "This was not run: what it would do, or where, is no longer what was allowed. Call it again.",
            );
        }
        wish.go(inner, job, item).await
    }

    /// Runs it, whatever anyone says of it.
    pub(super) async fn go(self, inner: Arc<Inner>, job: Job, item: CommandRun) -> Ran {
        let began = Instant::now();
        let whose = self.whose(&job, &item);
        let running = match self.start(&inner, job.settings.clone(), whose).await {
            Ok(running) => running,
            Err(why) => return refused(item, &format!("The command was not run. {why}")),
        };
        let (time, then) = match self.time {
            Time::Yields(time) => (time, Then::Leave),
            Time::Ends(time) => (time, Then::End),
        };
        let Job {
            item: shown,
            reports,
            mut stopped,
            ..
        } = job;
        let listener = Listener::new(running.clone(), &shown.id, &*reports, self.tokens);
        let Some(mut listener) = listener else {
            return refused(item, "The command was not run.");
        };
        let left = listener.listen(time, then, &mut stopped).await;
        let cut = std::mem::replace(&mut listener.cut, Cut::new(0));
        drop(listener);
        ended(&inner, &running, item, left, cut, began)
    }

    fn whose(&self, job: &Job, item: &CommandRun) -> Whose {
        Whose {
            thread: job.thread,
            turn: job.turn.clone(),
            item: job.item.id.clone(),
            command: item.command.clone(),
            cwd: item.cwd.clone(),
            beyond: self.beyond,
        }
    }

    /// Starts it in its fence.
    async fn start(
        &self,
        inner: &Inner,
        settings: Settings,
        whose: Whose,
    ) -> Result<Arc<Running>, String> {
        let mut words = self.words.iter().map(Into::into);
        let launch = Launch {
            program: words.next().unwrap_or_default(),
            args: words.collect(),
            cwd: self.cwd.clone(),
            env: {
                let set = VARIABLES.map(|(name, value)| (name.to_owned(), Some(value.to_owned())));
                environment::of(std::env::vars_os(), &set.into())
            },
        };
        let (own, operator) = (inner.own.clone(), inner.operator.clone());
        let beyond = self.beyond;
        let held = tokio::task::spawn_blocking(move || {
            if beyond {
                return Ok(raddle_sandbox::Held {
                    policy: raddle_sandbox::Policy::FullAccess,
                    network: None,
                    accepts_second: false,
                });
            }
            held(&settings, &own, &*operator)
        });
        let held = held.await.map_err(|error| error.to_string())??;
        sees(&held, &self.cwd)?;
        let inside = fenced(&inner.fences, launch, held).await?;
        let stdio = match self.tty {
            true => Stdio::Terminal(Size::default()),
            // A model has nothing more to say to it.
            false => Stdio::Joined,
        };
        let opened = inner.engine.open(stdio);
        let (process, start) = opened.map_err(|error| error.to_string())?;
        let mut life = process.life;
        let running = inner.terminals.add(whose, process.input, process.leash)?;
        let started = async {
            let started = start.inside(&inside.fenced).map_err(|it| it.to_string());
            started?;
            life.started().await.map_err(|error| error.to_string())
        };
        match started.await {
            Ok(pid) => running.is_process(pid),
            Err(why) => {
                inner.terminals.remove(running.id);
                return Err(why);
            }
        }
        let watching = running
            .clone()
            .watch(life, process.stdout, process.stderr, inside);
        tokio::spawn(watching);
        Ok(running)
    }
}

async fn fenced(
    fences: &Fences,
    launch: Launch,
    held: raddle_sandbox::Held,
) -> Result<Inside, String> {
    let ready = fences.ready(launch, held).await;
    let ready = ready.map_err(|error| error.to_string())?;
    let inside = tokio::task::spawn_blocking(move || ready.wrap()).await;
    let inside = inside.map_err(|error| error.to_string())?;
    inside.map_err(|error| error.to_string())
}

/// What came of a call that started a command, or listened to one.
pub(super) fn ended(
    inner: &Inner,
    running: &Running,
    item: CommandRun,
    left: Left,
    cut: Cut,
    began: Instant,
) -> Ran {
    let took = began.elapsed();
    let code = match left {
        Left::Over(code) => code,
        Left::Running | Left::Stopped | Left::Late => None,
    };
    let (status, how) = match left {
        Left::Over(Some(0)) => (
            ItemStatus::Completed,
            "Process exited with code 0".to_owned(),
        ),
        Left::Over(Some(code)) => (
            ItemStatus::Failed,
            format!("Process exited with code {code}"),
        ),
        Left::Over(None) => (
            ItemStatus::Failed,
            "Process was lost, and how it ended is not known".to_owned(),
        ),
        Left::Running => (
            ItemStatus::Completed,
            format!("Process running with session ID {}", running.id),
        ),
        Left::Stopped => (
            ItemStatus::Interrupted,
            "Process was ended by the user's interrupt".to_owned(),
        ),
        Left::Late => (
            ItemStatus::Failed,
            "Process was ended because its time was up".to_owned(),
        ),
    };
    if left != Left::Running {
        inner.terminals.remove(running.id);
    }
    let tokens = cut.tokens();
    let (text, full) = cut.finish();
    let text = format!(
        "Wall time: {:.4} seconds\n{how}\nOriginal token count: {tokens}\nOutput:\n{}",
        took.as_secs_f64(),
        text
    );
    let failed = status != ItemStatus::Completed;
    Ran {
        status,
        body: ItemBody::Command(CommandRun {
            source: match item.source {
                CommandSource::Agent => CommandSource::Terminal,
                source => source,
            },
            terminal: Some(running.id.to_string()),
            exit_code: code,
            duration_ms: i64::try_from(took.as_millis()).ok(),
            ..item
        }),
        output: Output {
            failed,
            ..Output::text(text)
        },
        diff: None,
        pictures: Vec::new(),
        full,
    }
}

/// Nothing was done, and this is why.
pub(super) fn refused(item: CommandRun, why: &str) -> Ran {
    let body = ItemBody::Command(item);
    Ran::new(ItemStatus::Failed, body, Output::failure(why))
}
