//! Hooks: the operator's commands on events of threads.
//!
//! All hooks of an event run at once, each in the sandbox of the thread and with a deadline. The
//! strictest decision counts. A hook that fails decides nothing; the user is notified.

mod output;
mod process;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use raddle_config::{Hook, HookConfig, HookTrust};
use raddle_core::ports::{
    BoxFuture, HookCall, HookEntry, HookObserver, HookOutcome, HookRuling, HookRun, HookRunEnd,
    HookRunStatus, Hooks,
};
use raddle_core::{HookPiece, ItemId};
use serde_json::{Map, Value};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use self::output::Decision;
use crate::process::ProcessStarter;

/// The hooks of the configuration, as commands.
pub struct CommandHooks {
    config: HookConfig,
    starter: Arc<ProcessStarter>,
}

impl CommandHooks {
    /// Creates the hooks; none runs before an event.
    pub fn new(config: HookConfig, starter: ProcessStarter) -> Self {
        let starter = Arc::new(starter);
        Self { config, starter }
    }

    /// Returns the hooks that run on an event. Logs those that the user has to trust first.
    async fn selected(&self, call: &HookCall) -> Vec<Hook> {
        let config = self.config.clone();
        let loaded = tokio::task::spawn_blocking(move || config.load()).await;
        let Ok(set) = loaded else {
            return Vec::new();
        };
        for error in &set.errors {
            let (path, error) = (error.path.display(), &error.message);
            tracing::warn!(%path, error, "a file of hooks cannot be used");
        }
        let mut hooks = set.hooks;
        hooks.retain(|it| it.event == call.event && it.enabled && it.selects(&call.subjects));
        for hook in hooks.iter().filter(|it| !it.may_run()) {
            let why = match hook.trust() {
                HookTrust::Modified => "it has changed since it was trusted",
                _ => "it is not trusted",
            };
            let key = &hook.key;
            tracing::warn!(
                key,
                why,
                "a hook does not run; `raddle hooks trust` trusts it"
            );
        }
        hooks.retain(Hook::may_run);
        hooks
    }
}

impl Hooks for CommandHooks {
    fn run<'a>(
        &'a self,
        call: HookCall,
        observer: &'a dyn HookObserver,
    ) -> BoxFuture<'a, HookOutcome> {
        Box::pin(async move {
            let hooks = self.selected(&call).await;
            if hooks.is_empty() {
                return HookOutcome::default();
            }
            let call = Arc::new(call);
            let input: Arc<[u8]> = input(&call).to_string().into_bytes().into();
            let mut runs = JoinSet::new();
            for (at, hook) in hooks.into_iter().enumerate() {
                let started = Instant::now();
                let run = started_run(&hook);
                observer.observe(run.clone()).await;
                let (starter, call, input) = (self.starter.clone(), call.clone(), input.clone());
                runs.spawn(async move {
                    let running = process::run(&starter, &hook, &call.settings, &input);
                    let decision = match timeout(hook.timeout, running).await {
                        Ok(Ok(exit)) => Decision::of(call.event, &exit),
                        Ok(Err(error)) => Decision::failed(error.to_string()),
                        Err(_) => {
                            let seconds = hook.timeout.as_secs();
                            Decision::failed(format!("it was ended after {seconds} s"))
                        }
                    };
                    (at, started, run, hook.key, decision)
                });
            }
            let mut decisions = Vec::new();
            while let Some(joined) = runs.join_next().await {
                let Ok((at, started, run, key, decision)) = joined else {
                    continue;
                };
                for entry in &decision.entries {
                    if let HookEntry::Error(error) = entry {
                        tracing::warn!(key, error, "a hook failed");
                    }
                }
                observer
                    .observe(ended_run(run.clone(), started, &decision))
                    .await;
                decisions.push((at, run.id, decision));
            }
            // In the order of the configuration, whichever ended first.
            decisions.sort_by_key(|(at, ..)| *at);
            outcome(decisions)
        })
    }

    fn is_empty(&self) -> bool {
        self.config.is_known_empty()
    }
}

/// Joins the decisions of all hooks.
fn outcome(decisions: Vec<(usize, String, Decision)>) -> HookOutcome {
    let mut outcome = HookOutcome::default();
    for (_, run, decision) in decisions {
        let before = outcome.ruling.clone();
        outcome.ruling = outcome.ruling.stricter(decision.ruling);
        if outcome.ruling != before {
            outcome.ruled_by = Some(run.clone());
        }
        if let Some(input) = decision.updated_input {
            // Two changes cannot be joined.
            match &outcome.updated_input {
                None => outcome.updated_input = Some(input),
                Some(first) if *first == input => {}
                Some(_) => {
                    let why = "Two hooks change the input of this call in different ways.";
                    let deny = HookRuling::Deny(why.to_owned());
                    outcome.ruling = outcome.ruling.stricter(deny);
                }
            }
        }
        let text = decision.context;
        outcome
            .context
            .extend(text.map(|text| HookPiece { run, text }));
    }
    outcome
}

/// Returns the input of a hook: the members of every event, and those of this one.
fn input(call: &HookCall) -> Value {
    let mut members = Map::new();
    let mut set = |name: &str, value: Value| members.insert(name.to_owned(), value);
    set("session_id", call.thread.to_string().into());
    if let Some(turn) = &call.turn {
        set("turn_id", turn.to_string().into());
    }
    set("transcript_path", Value::Null);
    set("cwd", call.settings.cwd.as_str().into());
    set("hook_event_name", call.event.name().into());
    set(
        "model",
        call.settings.model.as_deref().unwrap_or_default().into(),
    );
    set("permission_mode", "default".into());
    members.extend(call.input.clone());
    Value::Object(members)
}

fn started_run(hook: &Hook) -> HookRun {
    HookRun {
        id: ItemId::mint().to_string(),
        event: hook.event,
        display_order: hook.display_order,
        layer: hook.layer,
        source_path: hook.source_path.display().to_string(),
        status_message: hook.status_message.clone(),
        started_at: seconds_now(),
        end: None,
    }
}

fn ended_run(mut run: HookRun, started: Instant, decision: &Decision) -> HookRun {
    run.end = Some(HookRunEnd {
        completed_at: seconds_now(),
        duration_ms: i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX),
        status: match (&decision.ruling, decision.has_failed()) {
            (_, true) => HookRunStatus::Failed,
            (HookRuling::Pass, false) => HookRunStatus::Completed,
            (HookRuling::Ask(_) | HookRuling::Deny(_), false) => HookRunStatus::Blocked,
        },
        entries: decision.entries.clone(),
    });
    run
}

fn seconds_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |it| i64::try_from(it.as_secs()).unwrap_or(i64::MAX))
}
