//! `host/workspace_read`, `host/workspace_list`, `host/workspace_write`, `host/command_run` and
//! `host/model_call`: acts in the thread whose call the plugin answers.

use std::sync::Arc;

use raddle_console::is_plain;
use raddle_core::ports::{ActApprover, BoxFuture, MODEL_CALL, NotApproved, PluginAct, ToolResult};
use raddle_core::{ItemBody, ItemStatus};
use raddle_rpc::{ErrorObject, code};
use serde_json::{Value, json};

use super::{PluginHost, invalid_params, refused};
use crate::sidecar::manifest::Manifest;
use crate::sidecar::open_calls::OpenCall;

/// Methods that act in a thread, and the permission that each needs.
const ACTS: [(&str, &str); 5] = [
    ("host/workspace_read", "workspace.read"),
    ("host/workspace_list", "workspace.read"),
    ("host/workspace_write", "workspace.write"),
    ("host/command_run", "command.run"),
    (MODEL_CALL, "model.call"),
];

/// Longest description of an act in the log.
const LOGGED_BYTES_MAX: usize = 300;

/// Returns the permission that a method needs, if it acts in a thread.
pub(super) fn permission_of(method: &str) -> Option<&'static str> {
    let mut acts = ACTS.iter();
    acts.find_map(|(name, permission)| (*name == method).then_some(*permission))
}

impl PluginHost {
    /// Acts in the thread whose call the plugin answers.
    pub(super) async fn act(
        &self,
        permission: &str,
        method: &str,
        params: Value,
    ) -> Result<Value, ErrorObject> {
        let call = self.permitted(permission, &params).await?;
        let Value::Object(mut arguments) = params else {
            return Err(invalid_params("the params must be an object"));
        };
        arguments.remove("call_id");
        let ended = || refused("the call has ended");
        let (Some(acts), Some(running)) = (call.acts.clone(), call.begin_act()) else {
            return Err(ended());
        };
        // The semaphore is never closed.
        let _permit = tokio::select! {
            permit = self.acts.acquire() => permit,
            () = running.stopped() => return Err(ended()),
        };
        let about = described(&arguments);
        let act = PluginAct {
            plugin: self.manifest.id.clone(),
            tool: method.to_owned(),
            arguments: Value::Object(arguments).to_string(),
            approver: Arc::new(CallApprover {
                manifest: self.manifest.clone(),
                call: call.clone(),
            }),
            stopped: running.stopped(),
        };
        let work = acts.run(act);
        // It ends with its call, which waits for it, and not with the process of the plugin.
        let task = tokio::spawn(async move {
            let result = work.await;
            drop(running);
            result
        });
        let result = task.await.map_err(|_| {
            ErrorObject::new(
                code::INTERNAL,
                "an internal error; the server's log says more",
            )
        })?;
        let outcome = outcome(method, result);
        let text = match &outcome {
            Ok(_) => "done",
            Err(error) => &*error.message,
        };
        self.note_act(&format!("{method} {about}: {text}"));
        outcome
    }
}

/// Describes an act for the log.
fn described(arguments: &serde_json::Map<String, Value>) -> String {
    let named = ["path", "command", "argv", "prompt"];
    let named = named.into_iter().find_map(|it| arguments.get(it));
    let mut text = named.map_or_else(|| "\".\"".to_owned(), Value::to_string);
    text.truncate(text.floor_char_boundary(LOGGED_BYTES_MAX));
    text
}

/// Returns the result of an act for the plugin.
pub(super) fn outcome(method: &str, result: ToolResult) -> Result<Value, ErrorObject> {
    let ToolResult {
        status,
        body,
        output,
        ..
    } = result;
    match body {
        // A command that ran has a result, whatever its exit code is.
        ItemBody::Command(it) if it.duration_ms.is_some() && status != ItemStatus::Interrupted => {
            Ok(json!({
                "exit_code": it.exit_code,
                "output": it.printed.unwrap_or_default(),
                "duration_ms": it.duration_ms,
            }))
        }
        _ if output.failed => Err(refused(output.text)),
        ItemBody::Patch(it) => Ok(json!({ "changed": !it.changes.is_empty() })),
        _ => serde_json::from_str(&output.text).map_err(|error| {
            ErrorObject::new(
                code::INTERNAL,
                format!("{method} has no usable result: {error}"),
            )
        }),
    }
}

/// Asks the user of a call to approve an act.
struct CallApprover {
    manifest: Arc<Manifest>,
    call: Arc<OpenCall>,
}

impl ActApprover for CallApprover {
    fn approve(&self, what: String) -> BoxFuture<'_, Result<String, NotApproved>> {
        Box::pin(async move {
            let Manifest { id, version, .. } = &*self.manifest;
            let message = format!("The plugin {id} {version} {what}");
            // The question must show all of the act.
            if !message.chars().all(is_plain) {
                let why = "it has characters that a question cannot show";
                return Err(NotApproved(why.to_owned()));
            }
            let question = super::permissions::form(&message)
                .map_err(|error| NotApproved(error.message.into_owned()))?;
            let accepted_by = self.call.questions.accepted_by(&question, None).await;
            let principal =
                accepted_by.map_err(|why| NotApproved(format!("the user is not asked: {why}")))?;
            principal.ok_or_else(|| NotApproved("the user did not approve it".to_owned()))
        })
    }
}
