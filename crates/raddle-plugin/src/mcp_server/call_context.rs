//! The client of a running call: its user, its wish for progress, and its cancellation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tokio::sync::watch;

use super::peer::McpPeer;
use super::{Form, FormAnswer};

/// The client of a running call. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CallContext {
    peer: Arc<McpPeer>,
    cancelled: watch::Receiver<bool>,
    progress: Option<Arc<ProgressReport>>,
}

/// Progress notifications of a call whose client asked for them.
#[derive(Debug)]
struct ProgressReport {
    token: Value,
    steps: AtomicU64,
}

impl CallContext {
    pub(crate) fn new(
        peer: Arc<McpPeer>,
        cancelled: watch::Receiver<bool>,
        progress_token: Option<Value>,
    ) -> Self {
        let progress = progress_token.map(|token| {
            let steps = AtomicU64::new(0);
            Arc::new(ProgressReport { token, steps })
        });
        Self {
            peer,
            cancelled,
            progress,
        }
    }

    /// Shows a form to the user and waits for the answer. Dropping the future withdraws the form.
    pub async fn ask(&self, form: &Form) -> FormAnswer {
        match self.elicit(&form.params()).await {
            Some(result) => FormAnswer::read(&result),
            None => FormAnswer::Unavailable,
        }
    }

    /// Shows a form that another MCP server wrote, and waits for the result as the client sends it.
    /// `None` if the client cannot show forms, or failed to. Dropping the future withdraws the form.
    pub async fn pass_on(&self, message: &str, schema: &Value) -> Option<Value> {
        let params = json!({ "message": message, "requestedSchema": schema });
        self.elicit(&params).await
    }

    /// Sends `elicitation/create`, if the client declared that it shows forms.
    async fn elicit(&self, params: &Value) -> Option<Value> {
        if !self.peer.shows_forms() {
            tracing::info!("a request was not shown: the MCP client declared no elicitation");
            return None;
        }
        self.peer
            .request("elicitation/create", params)
            .answer()
            .await
    }

    /// Reports one more step of the turn, if the client asked for progress.
    pub fn report_step(&self, message: &str) {
        let Some(progress) = &self.progress else {
            return;
        };
        let step = progress.steps.fetch_add(1, Ordering::Relaxed) + 1;
        let token = &progress.token;
        let params = json!({ "progressToken": token, "progress": step, "message": message });
        self.peer.notify("notifications/progress", &params);
    }

    /// Whether the client cancelled the call, or is gone.
    pub fn is_cancelled(&self) -> bool {
        *self.cancelled.borrow()
    }

    /// Resolves when the client cancels the call, or is gone.
    pub async fn cancelled(&self) {
        let mut cancelled = self.cancelled.clone();
        if cancelled.wait_for(|it| *it).await.is_err() {
            // The call has ended, and cannot be cancelled any more.
            std::future::pending::<()>().await;
        }
    }
}
