//! The host's side of an installed plugin: approvals of its permissions, and its log.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use raddle_core::ports::BoxFuture;
use raddle_rpc::{ErrorObject, code};
use rmcp::model::{ElicitRequestParams, ElicitationAction};
use serde_json::{Value, json};

use super::events::PluginEvents;
use super::frame::FrameFault;
use super::manifest::Manifest;
use super::session::HostMethods;
use crate::log_budget::LogBudget;
use crate::log_file::LogFile;
use crate::mcp::Elicitations;

/// The host of one plugin, across restarts of its process.
pub(super) struct PluginHost {
    pub(super) manifest: Arc<Manifest>,
    /// The calls of the plugin, and the questions that belong to them.
    pub(super) elicitations: Arc<Elicitations>,
    /// Events of the plugin for clients.
    pub(super) events: Arc<PluginEvents>,
    pub(super) log: LogFile,
    /// Events that the plugin causes in its log.
    pub(super) log_budget: LogBudget,
    /// Permissions that the user approved.
    approved: Mutex<BTreeSet<String>>,
    /// Held while the user is asked. A plugin that asks twice at once has one question.
    asking: tokio::sync::Mutex<()>,
}

impl PluginHost {
    pub(super) fn new(manifest: Arc<Manifest>, log: LogFile) -> Self {
        Self {
            elicitations: Elicitations::new(manifest.id.clone()),
            events: PluginEvents::new(manifest.id.clone()),
            manifest,
            log,
            log_budget: LogBudget::default(),
            approved: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    fn approved(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.approved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the user for a permission, in the middle of a call.
    async fn approval(&self, params: &Value) -> Result<Value, ErrorObject> {
        let Some(permission) = params["permission"].as_str() else {
            let message =
                "`permission` must be a string, as in {\"permission\": \"workspace.read\"}";
            return Err(ErrorObject::new(code::INVALID_PARAMS, message));
        };
        if !self.manifest.permissions.iter().any(|it| it == permission) {
            self.note(&format!(
                "the permission {permission:?} is denied, because `permissions` in plugin.toml \
                 does not list it"
            ));
            return Ok(json!({ "approved": false }));
        }
        let _asking = self.asking.lock().await;
        if self.approved().contains(permission) {
            return Ok(json!({ "approved": true }));
        }
        let result = self.elicitations.try_ask(self.question(permission)?).await;
        let result = result.map_err(|reason| {
            let message =
                format!("the user is not asked: {reason}; ask once, in the middle of a call");
            self.note(&format!("permission {permission}: {message}"));
            ErrorObject::new(code::INVALID_REQUEST, message)
        })?;
        let is_approved = result.action == ElicitationAction::Accept;
        if is_approved {
            self.approved().insert(permission.to_owned());
        }
        Ok(json!({ "approved": is_approved }))
    }

    /// Returns the question for a permission: a form without fields, to accept or to decline.
    fn question(&self, permission: &str) -> Result<ElicitRequestParams, ErrorObject> {
        let Manifest { id, version, .. } = &*self.manifest;
        let message = format!("The plugin {id} {version} asks for the permission {permission}.");
        let question = json!({
            "mode": "form",
            "message": message,
            "requestedSchema": { "type": "object", "properties": {} },
        });
        serde_json::from_value(question)
            .map_err(|error| ErrorObject::new(code::INTERNAL, error.to_string()))
    }

    /// Writes an event that the plugin caused to its log, unless it causes too many.
    fn note(&self, text: &str) {
        let Some(dropped) = self.log_budget.take(Instant::now()) else {
            return;
        };
        if dropped > 0 {
            self.log
                .append(format!("raddle: {dropped} events were dropped\n"));
        }
        tracing::debug!(plugin = self.manifest.id, text, "an event of a plugin");
        self.log.append(format!("raddle: {text}\n"));
    }
}

impl HostMethods for PluginHost {
    fn call<'a>(
        &'a self,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Result<Value, ErrorObject>> {
        Box::pin(async move {
            match method {
                "host/request_approval" => self.approval(&params).await,
                method => {
                    let message = format!("the host has no method `{method}`");
                    Err(ErrorObject::new(code::METHOD_NOT_FOUND, message))
                }
            }
        })
    }

    fn notify(&self, method: &str, params: Value) {
        self.events.send(method, params);
    }

    fn report(&self, fault: FrameFault) {
        self.note(&format!("a message deviates from the contract: {fault:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use raddle_core::ports::QuestionSink;
    use raddle_core::{Ask, RequestAnswer, Resolution, ThreadId};

    use super::*;
    use crate::mcp::CallUser;

    /// A user that answers every question with this action.
    struct FakeUser {
        action: &'static str,
        asked: AtomicUsize,
    }

    impl QuestionSink for FakeUser {
        fn ask(&self, ask: Ask) -> BoxFuture<'static, Resolution> {
            let Ask::Elicitation(question) = ask else {
                panic!("another question");
            };
            assert_eq!(question.server, "org.example");
            let message = "The plugin org.example 1 asks for the permission workspace.read.";
            assert_eq!(question.body["message"], message);
            self.asked.fetch_add(1, Ordering::Relaxed);
            let body = json!({ "action": self.action });
            Box::pin(std::future::ready(Resolution::Answered {
                by: "me".to_owned(),
                answer: Box::new(RequestAnswer::Elicitation { body }),
            }))
        }
    }

    fn host(folder: &std::path::Path) -> PluginHost {
        let manifest = Manifest {
            id: "org.example".to_owned(),
            version: "1".to_owned(),
            entrypoint: vec!["x".to_owned()],
            permissions: vec!["workspace.read".to_owned()],
            methods: Vec::new(),
            tools: Vec::new(),
            warnings: Vec::new(),
        };
        PluginHost::new(Arc::new(manifest), LogFile::open(folder.join("log")))
    }

    async fn ask(host: &PluginHost, permission: &str) -> Result<Value, String> {
        let params = json!({ "permission": permission });
        let answer = host.call("host/request_approval", params).await;
        answer.map_err(|error| error.message.into_owned())
    }

    #[tokio::test]
    async fn a_permission_is_asked_in_a_call_and_an_approval_is_remembered() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let approved = |it: bool| Ok(json!({ "approved": it }));
        for (action, is_approved, questions) in [("accept", true, 1), ("decline", false, 3)] {
            let host = host(folder.path());
            let error = ask(&host, "workspace.read")
                .await
                .expect_err("no call is open");
            let expected = "the user is not asked: no call of a tool is open; ask once, in the \
                            middle of a call";
            assert_eq!(error, expected);
            let user = Arc::new(FakeUser {
                action,
                asked: AtomicUsize::new(0),
            });
            let call = host.elicitations.add_call(Some(CallUser {
                thread: ThreadId::mint(),
                questions: user.clone(),
            }));
            for _ in 0..3 {
                let answer = ask(&host, "workspace.read").await;
                assert_eq!(answer, approved(is_approved), "{action}");
            }
            // The manifest does not list it.
            assert_eq!(ask(&host, "command.run").await, approved(false));
            assert_eq!(user.asked.load(Ordering::Relaxed), questions, "{action}");
            drop(call);
            let later = ask(&host, "workspace.read").await;
            assert_eq!(later.is_ok(), is_approved, "{action}");
        }
    }
}
