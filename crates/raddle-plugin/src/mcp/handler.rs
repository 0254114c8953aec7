//! Messages that an MCP server sends on its own.
#![expect(
    deprecated,
    reason = "servers of the previous revision still send log messages"
)]

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Instant;

use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, FormElicitationCapability, Implementation, LoggingLevel,
    LoggingMessageNotificationParam, ProgressNotificationParam, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::Value;
use tokio::sync::{Notify, watch};

use super::call::OpenCalls;
use super::elicitation::Elicitations;
use crate::log_budget::LogBudget;

/// Longest part of a server's log message that our log contains.
const LOG_BYTES_MAX: usize = 2 << 10;

/// Handles the messages of one server. It offers the server questions to the user, and nothing
/// else: no files, no model.
#[derive(Clone)]
pub(crate) struct Handler {
    pub(crate) server: Arc<str>,
    pub(crate) calls: Arc<OpenCalls>,
    pub(crate) elicitations: Arc<Elicitations>,
    /// Notified when the server's tools have changed.
    pub(crate) tools_changed: Arc<Notify>,
    /// The messages that the server logs.
    pub(crate) log: Arc<LogBudget>,
    /// Closed when the output of the server's process has ended; `None` without a process.
    pub(crate) output: Option<watch::Receiver<()>>,
}

impl Handler {
    /// Asks the user, until the server has ended. The connection waits for the handlers of a server
    /// that has ended before it fails the calls.
    pub(super) async fn ask(&self, request: ElicitRequestParams) -> ElicitResult {
        tokio::select! {
            biased;
            result = self.elicitations.ask(request) => result,
            () = self.ended() => ElicitResult::new(ElicitationAction::Cancel),
        }
    }

    /// Waits until the output of the server's process has ended.
    async fn ended(&self) {
        let Some(mut output) = self.output.clone() else {
            return std::future::pending().await;
        };
        while output.changed().await.is_ok() {}
    }
}

impl ClientHandler for Handler {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        tokio::select! {
            biased;
            result = self.ask(request) => Ok(result),
            // The server has cancelled its request, so the result is not sent.
            () = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.calls.report(&params);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let is_debug = matches!(params.level, LoggingLevel::Debug);
        if is_debug && !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        // A server that floods with messages does not flood the log.
        let Some(dropped) = self.log.take(Instant::now()) else {
            return;
        };
        let server = &*self.server;
        if dropped > 0 {
            tracing::warn!(
                server,
                dropped,
                "messages that an MCP server logs were dropped"
            );
        }
        let text = log_text(&params.data);
        match params.level {
            LoggingLevel::Debug => tracing::debug!(server, text, "an MCP server logs"),
            LoggingLevel::Info | LoggingLevel::Notice => {
                tracing::info!(server, text, "an MCP server logs");
            }
            _ => tracing::warn!(server, text, "an MCP server logs"),
        }
    }

    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("raddle", env!("CARGO_PKG_VERSION"));
        let elicitation = ElicitationCapability::new()
            .with_form(FormElicitationCapability::new())
            .with_url(UrlElicitationCapability::new());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        ClientConfig::new(capabilities, name)
    }
}

/// Returns the beginning of the data of a log message.
fn log_text(data: &Value) -> String {
    let mut text = BoundedText(String::new());
    // The error only says that there is more.
    let _ = match data {
        Value::String(data) => text.write_str(data),
        data => write!(text, "{data}"),
    };
    text.0
}

/// A text that accepts no more than its limit.
struct BoundedText(String);

impl fmt::Write for BoundedText {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let rest = LOG_BYTES_MAX - self.0.len();
        self.0.push_str(&piece[..piece.floor_char_boundary(rest)]);
        match piece.len() > rest {
            true => Err(fmt::Error),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_beginning_of_a_log_message_is_logged() {
        let long = "ä".repeat(LOG_BYTES_MAX);
        for (data, expected) in [
            (json!("a\nb"), "a\nb".to_owned()),
            (json!({"a": 1}), "{\"a\":1}".to_owned()),
            (json!(long), "ä".repeat(LOG_BYTES_MAX / 2)),
            (
                json!([long]),
                format!("[\"{}", "ä".repeat(LOG_BYTES_MAX / 2 - 1)),
            ),
        ] {
            assert_eq!(log_text(&data), expected);
        }
    }
}
