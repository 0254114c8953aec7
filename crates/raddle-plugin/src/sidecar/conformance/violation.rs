//! The violations of the contract, with their codes. docs/plugins-reference.md lists them.

use std::fmt::Display;
use std::time::Duration;

use raddle_console::sanitize;
use raddle_sandbox::{ExitReport, ExitStatus};
use serde_json::Value;

use crate::sidecar::frame::FrameFault;
use crate::sidecar::manifest::Manifest;

/// Longest JSON of a plugin in the message of a violation.
const JSON_BYTES_MAX: usize = 200;

/// A deviation of a plugin from the contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractViolation {
    /// Name that does not change between versions.
    pub code: &'static str,
    /// Description: what happened, and what the contract requires.
    pub message: String,
}

fn violation(code: &'static str, message: String) -> ContractViolation {
    ContractViolation { code, message }
}

pub(super) fn manifest_invalid(error: &dyn Display) -> ContractViolation {
    violation("manifest_invalid", error.to_string())
}

pub(super) fn start_failed(error: &dyn Display) -> ContractViolation {
    violation(
        "start_failed",
        format!("the plugin cannot be started: {error}"),
    )
}

/// Returns the violation of a result of `plugin/health`, if it is one.
pub(crate) fn of_health(manifest: &Manifest, result: &Value) -> Option<ContractViolation> {
    if result["ok"] != true {
        let message = format!(
            "the result of plugin/health is {}; it must have `\"ok\": true`",
            excerpt(result)
        );
        return Some(violation("health_result", message));
    }
    for (key, expected) in [("plugin_id", &manifest.id), ("version", &manifest.version)] {
        if result[key] != **expected {
            let message = format!(
                "`{key}` in the result of plugin/health is {}; plugin.toml says {expected:?}",
                excerpt(&result[key])
            );
            return Some(violation("health_identity", message));
        }
    }
    None
}

/// Returns the violation of a result of `plugin/shutdown`, if it is one.
pub(super) fn of_shutdown(result: &Value) -> Option<ContractViolation> {
    if result["ok"] == true {
        return None;
    }
    let message = format!(
        "the result of plugin/shutdown is {}; it must be {{\"ok\": true}}",
        excerpt(result)
    );
    Some(violation("shutdown_result", message))
}

pub(super) fn call_failed(method: &str, error: &dyn Display) -> ContractViolation {
    violation(
        "call_failed",
        format!("the call of {method} failed: {error}"),
    )
}

pub(super) fn no_response(method: &str, error: &dyn Display) -> ContractViolation {
    let message = format!("{method} has no response: {error}; every request needs one");
    violation("no_response", message)
}

pub(super) fn exited_early(method: &str, status: Option<ExitStatus>) -> ContractViolation {
    let event = match status {
        Some(status) => format!("the process ended with status {}", status.code()),
        None => "the process closed its stdout".to_owned(),
    };
    let message = format!(
        "{event} before it had answered {method}; it must run until it has answered \
         plugin/shutdown"
    );
    violation("exited_early", message)
}

pub(super) fn exit_timeout(limit: Duration) -> ContractViolation {
    let message = format!(
        "the process did not exit within {} s after its response to plugin/shutdown",
        limit.as_secs_f64()
    );
    violation("exit_timeout", message)
}

pub(super) fn exit_status(status: Option<ExitStatus>) -> ContractViolation {
    let event = match status {
        Some(status) => format!("the exit status is {}", status.code()),
        None => "the process was killed".to_owned(),
    };
    let message = format!("{event} after plugin/shutdown; it must be 0");
    violation("exit_status", message)
}

pub(super) fn processes_left(report: &ExitReport) -> ContractViolation {
    let message = format!(
        "the plugin left {} processes behind ({}), which were killed; end them before the exit",
        report.killed,
        report.names.join(", ")
    );
    violation("processes_left", message)
}

pub(super) fn approval_params() -> ContractViolation {
    let message = "the params of host/request_approval have no `permission`; send \
                   {\"permission\": NAME}";
    violation("approval_params", message.to_owned())
}

pub(super) fn permission_not_declared(permission: &str) -> ContractViolation {
    let message = format!(
        "the plugin asked for or used the permission {permission:?}, which `permissions` in \
         plugin.toml does not list"
    );
    violation("permission_not_declared", message)
}

pub(super) fn permission_not_asked(method: &str, permission: &str) -> ContractViolation {
    let message = format!(
        "the plugin called {method} before it asked for the permission {permission:?} with \
         host/request_approval"
    );
    violation("permission_not_asked", message)
}

pub(super) fn host_params(method: &str, error: &dyn Display) -> ContractViolation {
    let message = format!("the params of {method} are invalid: {error}");
    violation("host_params", message)
}

pub(super) fn unknown_host_method(method: &str) -> ContractViolation {
    let message = format!("the plugin called {method:?}, which is no method of the host");
    violation("unknown_host_method", message)
}

pub(super) fn event_call_id(method: &str, error: &dyn Display) -> ContractViolation {
    let message = format!("the event {method:?} names no open call: {error}");
    violation("event_call_id", message)
}

/// Returns the violation of a deviation in the plugin's output.
pub(super) fn of_frame(fault: &FrameFault) -> ContractViolation {
    let (code, message) = match fault {
        FrameFault::NotAMessage(text) => (
            "not_json_rpc",
            format!(
                "a line on stdout is no JSON-RPC message: {text:?}; write one object per line, and \
                 log to stderr"
            ),
        ),
        FrameFault::TooLong => (
            "line_too_long",
            "a line on stdout is longer than 4 MiB; send less at once".to_owned(),
        ),
        FrameFault::TooManyValues => (
            "too_many_values",
            "a message has more than 100,000 values; send less at once".to_owned(),
        ),
        FrameFault::NoVersion => (
            "no_jsonrpc_version",
            "a message lacks `\"jsonrpc\": \"2.0\"`".to_owned(),
        ),
        FrameFault::InvalidRequest(reason) => (
            "invalid_request",
            format!("a request of the plugin is malformed: {reason}"),
        ),
        FrameFault::ResultAndError => (
            "result_and_error",
            "a response has both `result` and `error`; send one of them".to_owned(),
        ),
        FrameFault::UnknownId(id) => (
            "unknown_id",
            format!(
                "a response has the id {id:?}, which no open request has; send the id of the \
                 request, once"
            ),
        ),
        FrameFault::TooManyCalls => (
            "too_many_calls",
            "more than 64 calls of the host were open; wait for responses".to_owned(),
        ),
    };
    violation(code, message)
}

/// Returns the beginning of a value as JSON, without escapes of terminals.
fn excerpt(value: &Value) -> String {
    let mut text = sanitize(&value.to_string());
    text.truncate(text.floor_char_boundary(JSON_BYTES_MAX));
    text
}
