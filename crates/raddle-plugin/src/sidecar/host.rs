//! The host's side of an installed plugin: the methods that the plugin may call, and its log.

mod acts;
mod log;
mod permissions;
mod secret;
mod state;

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use raddle_core::ports::BoxFuture;
use raddle_rpc::{ErrorObject, code};
use serde_json::Value;
use tokio::sync::Semaphore;

pub(super) use self::state::StateStore;
use super::events::PluginEvents;
use super::frame::FrameFault;
use super::inspection::InspectedPlugin;
use super::manifest::Manifest;
use super::open_calls::OpenCalls;
use super::permission_store::PermissionStore;
use super::session::HostMethods;
use crate::log_budget::LogBudget;
use crate::log_file::LogFile;

/// The notification with an event of a model's answer.
pub(super) const MODEL_EVENT: &str = "model/event";

/// Limit: calls of one plugin that use the disk at a time; beyond it, they wait.
const DISK_CALLS_MAX: usize = 4;

/// Longest event in the log of a plugin. Parts of it come from the plugin.
const NOTE_BYTES_MAX: usize = 4 << 10;
/// Limit: acts of one plugin in threads that run at a time; beyond it, they wait.
const ACTS_MAX: usize = 8;

/// The host of one plugin, across restarts of its process.
pub(super) struct PluginHost {
    pub(super) manifest: Arc<Manifest>,
    /// Hash of the trusted files, which approvals are for.
    hash: String,
    /// The calls of the plugin, and the questions that belong to them.
    pub(super) calls: Arc<OpenCalls>,
    /// Events of the plugin for clients.
    pub(super) events: Arc<PluginEvents>,
    log: LogFile,
    /// Messages and other events that the plugin causes in its log.
    log_budget: LogBudget,
    /// Its acts, secrets and permissions in its log.
    act_budget: LogBudget,
    permissions: PermissionStore,
    /// Whether the plugin is no longer installed as it was.
    is_stopped: Arc<AtomicBool>,
    state: StateStore,
    /// Returns a secret of the server by its name.
    secrets: fn(&str) -> Option<String>,
    disk: Semaphore,
    acts: Semaphore,
}

impl PluginHost {
    /// Creates the host of a plugin, whose files are in this home.
    pub(super) fn new(plugin: &InspectedPlugin, log: LogFile, home: &Path) -> Self {
        let manifest = Arc::new(plugin.manifest.clone());
        let secrets = |name: &str| std::env::var(name).ok();
        Self::with(manifest, plugin.hash.text.clone(), log, home, secrets)
    }

    /// Creates the host of a plugin under test. Its secrets are no real ones.
    pub(super) fn for_test(manifest: Arc<Manifest>, home: &Path) -> Self {
        let log = LogFile::open(home.join("log"));
        let secrets = |name: &str| Some(format!("the test value of {name}"));
        Self::with(manifest, String::new(), log, home, secrets)
    }

    fn with(
        manifest: Arc<Manifest>,
        hash: String,
        log: LogFile,
        home: &Path,
        secrets: fn(&str) -> Option<String>,
    ) -> Self {
        let calls = OpenCalls::new(manifest.id.clone());
        Self {
            hash,
            events: PluginEvents::new(manifest.id.clone(), calls.stopped.clone()),
            calls,
            log,
            log_budget: LogBudget::default(),
            act_budget: LogBudget::of_acts(),
            permissions: PermissionStore::of(home, &manifest.id),
            state: StateStore::of(home, &manifest.id),
            secrets,
            is_stopped: Arc::default(),
            manifest,
            disk: Semaphore::new(DISK_CALLS_MAX),
            acts: Semaphore::new(ACTS_MAX),
        }
    }

    /// Stores no further approval, and no further state.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Runs work that blocks on the disk. Its error is one of the host, and is logged.
    async fn on_disk<T: Send + 'static, E: Display + Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, E> + Send + 'static,
    ) -> Result<T, ErrorObject> {
        // The semaphore is never closed.
        let _permit = self.disk.acquire().await;
        let failed = |error: &dyn Display| {
            self.note(&format!("a call of the host failed: {error}"));
            ErrorObject::new(code::INTERNAL, error.to_string())
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(result) => result.map_err(|error| failed(&error)),
            Err(error) => Err(failed(&error)),
        }
    }

    /// Writes an event that the plugin caused to its log, unless it causes too many.
    fn note(&self, text: &str) {
        self.note_within(&self.log_budget, text);
    }

    /// Writes an act, a secret or a permission to the log, whatever else the plugin logs.
    fn note_act(&self, text: &str) {
        self.note_within(&self.act_budget, text);
    }

    fn note_within(&self, budget: &LogBudget, text: &str) {
        let text = &text[..text.floor_char_boundary(NOTE_BYTES_MAX)];
        if self.append(budget, format!("raddle: {text}\n")) {
            tracing::debug!(plugin = self.manifest.id, text, "an event of a plugin");
        }
    }

    /// Appends a line to the log. Returns false if the plugin caused too many.
    fn append(&self, budget: &LogBudget, line: String) -> bool {
        let Some(dropped) = budget.take(Instant::now()) else {
            return false;
        };
        if dropped > 0 {
            self.log
                .append(format!("raddle: {dropped} events were dropped\n"));
        }
        self.log.append(line);
        true
    }
}

/// Returns the permission that a method of the host needs, if it needs one.
pub(super) fn permission_of(method: &str, params: &Value) -> Option<String> {
    match method {
        "host/secret" => Some(format!("secrets:{}", params["name"].as_str()?)),
        method => acts::permission_of(method).map(str::to_owned),
    }
}

fn invalid_params(message: impl Into<String>) -> ErrorObject {
    ErrorObject::new(code::INVALID_PARAMS, message.into())
}

fn refused(message: impl Into<String>) -> ErrorObject {
    ErrorObject::new(code::INVALID_REQUEST, message.into())
}

impl HostMethods for PluginHost {
    fn call<'a>(
        &'a self,
        method: &'a str,
        mut params: Value,
    ) -> BoxFuture<'a, Result<Value, ErrorObject>> {
        Box::pin(async move {
            if let Some(permission) = acts::permission_of(method) {
                return self.act(permission, method, params).await;
            }
            match method {
                "host/request_approval" => self.request_approval(params).await,
                "host/secret" => self.secret(&params).await,
                "host/state_get" => self.state_get(&params).await,
                "host/state_set" => self.state_set(&mut params).await,
                "host/log" => self.log(&params),
                method => {
                    let message = format!("the host has no method `{method}`");
                    Err(ErrorObject::new(code::METHOD_NOT_FOUND, message))
                }
            }
        })
    }

    fn notify(&self, method: &str, mut params: Value) {
        // All events are for clients, except those of an answer.
        if method != MODEL_EVENT {
            if let Err(error) = self.events.send(method, params) {
                self.note(&format!("an event is dropped: {error}"));
            }
            return;
        }
        match self.calls.find_named(&params) {
            Ok(call) => {
                let event = params.get_mut("event").map(Value::take);
                if let (Some(answer), Some(event)) = (&call.answer, event) {
                    answer.send(event);
                }
            }
            Err(error) => self.note(&format!("{MODEL_EVENT} is dropped: {error}")),
        }
    }

    fn report(&self, fault: FrameFault) {
        self.note(&format!("a message deviates from the contract: {fault:?}"));
    }

    fn is_late(&self, id: &str) -> bool {
        self.calls.stopped.remove(id)
    }
}

#[cfg(test)]
mod tests;
