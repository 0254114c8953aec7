//! The host of a test: answers the calls of the plugin, and collects the deviations.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raddle_core::ports::{BoxFuture, PluginActs, QuestionSink};
use raddle_core::{Ask, Resolution, ThreadId};
use raddle_rpc::{ErrorObject, code};
use serde_json::{Value, json};

use super::{ContractViolation, PluginTestOptions, TestStep, violation};
use crate::mcp::CallUser;
use crate::sidecar::frame::FrameFault;
use crate::sidecar::host::{MODEL_EVENT, PluginHost, permission_of};
use crate::sidecar::manifest::Manifest;
use crate::sidecar::open_calls::{CallLookupError, OpenCallGuard};
use crate::sidecar::session::HostMethods;

/// Violations and steps of one test that are kept. A plugin can cause any number.
const KEPT_MAX: usize = 100;

/// Longest description of a step.
const STEP_BYTES_MAX: usize = 200;

/// Name of the principal that approves permissions.
const PRINCIPAL: &str = "test";

pub(super) struct TestHost {
    pub(super) manifest: Arc<Manifest>,
    approves: bool,
    findings: Mutex<Findings>,
    /// The host of an installed plugin, with files of its own.
    host: PluginHost,
    acts: Arc<dyn PluginActs>,
    thread: ThreadId,
}

/// Results of a test so far.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) steps: Vec<TestStep>,
    pub(super) violations: Vec<ContractViolation>,
    /// Number of permissions that were denied, asked for or used.
    pub(super) denied: usize,
    /// Permissions that the plugin asked for.
    asked: BTreeSet<String>,
}

impl TestHost {
    pub(super) fn new(manifest: Arc<Manifest>, options: &PluginTestOptions) -> Self {
        Self {
            approves: options.approves,
            findings: Mutex::default(),
            host: PluginHost::for_test(manifest.clone(), &options.home),
            acts: options.acts.clone(),
            thread: ThreadId::mint(),
            manifest,
        }
    }

    /// Whether the plugin has no access to the hosts that its manifest lists.
    pub(super) fn denies_hosts(&self) -> bool {
        !self.approves && self.manifest.network_permissions().next().is_some()
    }

    pub(super) fn findings(&self) -> MutexGuard<'_, Findings> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn step(&self, name: String, outcome: String) {
        let mut findings = self.findings();
        if findings.steps.len() < KEPT_MAX {
            findings.steps.push(TestStep { name, outcome });
        }
    }

    /// Adds a violation, once.
    pub(super) fn violate(&self, violation: ContractViolation) {
        let all = &mut self.findings().violations;
        if all.len() < KEPT_MAX && !all.contains(&violation) {
            all.push(violation);
        }
    }

    /// Opens a call of a thread, unless the contract defines the method. Its host calls belong to
    /// it until the result is dropped.
    pub(super) fn open_call(&self, method: &str) -> Option<OpenCallGuard> {
        let user = CallUser {
            thread: self.thread,
            questions: Arc::new(AbsentUser),
        };
        let acts = Some(self.acts.clone());
        let is_own = !method.starts_with("plugin/");
        is_own.then(|| self.host.calls.add(Some(user), acts, None))
    }

    async fn approval(&self, params: &Value) -> Result<Value, ErrorObject> {
        let Some(permission) = params["permission"].as_str() else {
            self.violate(violation::approval_params());
            let message =
                "`permission` must be a string, as in {\"permission\": \"workspace.read\"}";
            return Err(ErrorObject::new(code::INVALID_PARAMS, message));
        };
        let is_declared = self.declares(permission);
        let approved = is_declared && self.approves;
        if approved {
            let principal = PRINCIPAL.to_owned();
            self.host.approve(permission, principal).await?;
        }
        let outcome = if approved { "approved" } else { "denied" };
        self.step(
            format!("host/request_approval {permission}"),
            outcome.to_owned(),
        );
        let mut findings = self.findings();
        findings.asked.insert(permission.to_owned());
        findings.denied += usize::from(!approved);
        Ok(json!({ "approved": approved }))
    }

    /// Whether the manifest lists a permission. It is a violation if not.
    fn declares(&self, permission: &str) -> bool {
        let is_declared = self.manifest.permissions.iter().any(|it| it == permission);
        if !is_declared {
            self.violate(violation::permission_not_declared(permission));
        }
        is_declared
    }

    /// Answers a call as the host of an installed plugin does.
    async fn answer(&self, method: &str, params: Value) -> Result<Value, ErrorObject> {
        let permission = permission_of(method, &params);
        let name = described(method, &params);
        if let Some(permission) = permission.filter(|it| self.declares(it)) {
            let is_asked = self.findings().asked.contains(&permission);
            if !is_asked {
                self.violate(violation::permission_not_asked(method, &permission));
            }
            self.findings().denied += usize::from(!self.approves);
        }
        let outcome = self.host.call(method, params).await;
        let text = match &outcome {
            Ok(_) => "ok".to_owned(),
            Err(error) => format!("error: {}", error.message),
        };
        match &outcome {
            Err(error) if error.code == code::METHOD_NOT_FOUND => {
                self.violate(violation::unknown_host_method(method));
                return outcome;
            }
            Err(error) if error.code == code::INVALID_PARAMS => {
                self.violate(violation::host_params(method, &error.message));
            }
            _ => {}
        }
        self.step(name, text);
        outcome
    }
}

/// Describes a call of the host.
fn described(method: &str, params: &Value) -> String {
    let members = ["path", "command", "argv", "name", "key", "message"];
    let mut subjects = members.iter().map(|it| &params[it]);
    let subject = subjects.find(|it| !it.is_null());
    let mut text = match subject {
        Some(Value::String(subject)) => format!("{method} {subject}"),
        Some(subject) => format!("{method} {subject}"),
        None => method.to_owned(),
    };
    text.truncate(text.floor_char_boundary(STEP_BYTES_MAX));
    text
}

/// No user: no question of an act is approved.
struct AbsentUser;

impl QuestionSink for AbsentUser {
    fn ask(&self, _: Ask) -> BoxFuture<'static, Resolution> {
        Box::pin(std::future::ready(Resolution::Withdrawn {}))
    }
}

impl HostMethods for TestHost {
    fn call<'a>(
        &'a self,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Result<Value, ErrorObject>> {
        Box::pin(async move {
            match method {
                "host/request_approval" => self.approval(&params).await,
                method => self.answer(method, params).await,
            }
        })
    }

    fn notify(&self, method: &str, params: Value) {
        let calls = &self.host.calls;
        let named = match method {
            MODEL_EVENT => calls.find_named(&params),
            _ => calls.find(&params),
        };
        match named {
            // An event that names no call is a proper one.
            Ok(_) | Err(CallLookupError::NoCall | CallLookupError::SeveralThreads) => {}
            Err(error) => self.violate(violation::event_call_id(method, &error)),
        }
        self.step(method.to_owned(), "received as a notification".to_owned());
    }

    fn report(&self, fault: FrameFault) {
        self.violate(violation::of_frame(&fault));
    }
}
