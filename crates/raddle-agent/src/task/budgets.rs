//! The budgets of a thread, as its running tools read them.

use std::sync::Arc;

use raddle_core::ThreadId;
use raddle_core::ports::BoxFuture;

use crate::threads::ThreadRegistry;
use crate::tool_gate::{BudgetReader, BudgetState};

/// Reads the budgets from the task of a thread.
pub(super) struct TaskBudgets {
    pub(super) shared: Arc<ThreadRegistry>,
    pub(super) thread: ThreadId,
}

impl BudgetReader for TaskBudgets {
    fn read(&self) -> BoxFuture<'_, Option<BudgetState>> {
        Box::pin(async move {
            let handle = self.shared.wait_live(self.thread).await?;
            let clock = self.shared.clock;
            let read = handle.inspect(move |thread| {
                let now = clock();
                BudgetState {
                    objection: thread.budget_objection(now),
                    used: thread.used(now),
                }
            });
            read.await.ok()
        })
    }
}
