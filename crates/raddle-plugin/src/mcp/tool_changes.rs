//! Changes of the tools of a server of the current revision, which reports them on request. Servers
//! of earlier revisions report them unasked.

use std::time::Duration;

use rmcp::model::{ErrorCode, ServerNotification, SubscriptionFilter};
use rmcp::{Peer, RoleClient, ServiceError};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

/// Shortest and longest wait before a subscription that ended is requested again.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// Limit: failed subscriptions to changes of an MCP server's tools in a row; beyond it, changes are
/// not followed until the server connects again.
const FAILURES_MAX: u32 = 10;

/// Notifies of changes as long as the server reports them.
pub(crate) async fn follow(peer: &Peer<RoleClient>, tools_changed: &Notify) {
    if !must_subscribe(peer) {
        return;
    }
    let mut filter = SubscriptionFilter::new();
    filter.tools_list_changed = Some(true);
    let (mut wait, mut failures) = (RETRY_MIN, 0);
    loop {
        let began = Instant::now();
        match subscribe(peer, filter.clone(), tools_changed).await {
            Ok(()) => failures = 0,
            Err(error) => {
                failures += 1;
                tracing::debug!(%error, "an MCP server does not report changes of its tools");
                if failures == FAILURES_MAX || is_final(&error) {
                    return;
                }
            }
        }
        if began.elapsed() > RETRY_MAX {
            wait = RETRY_MIN;
        }
        sleep(wait).await;
        wait = (wait * 2).min(RETRY_MAX);
        // Changes without a subscription are not reported.
        tools_changed.notify_one();
    }
}

/// Whether the server reports changes, and only to subscribers.
fn must_subscribe(peer: &Peer<RoleClient>) -> bool {
    let Some(info) = peer.peer_info() else {
        return false;
    };
    let tools = info.capabilities.tools.as_ref();
    let reports_changes = tools.is_some_and(|it| it.list_changed == Some(true));
    reports_changes && !info.protocol_version.has_initialize()
}

/// Whether a server that returns this error has no subscriptions.
fn is_final(error: &ServiceError) -> bool {
    matches!(error, ServiceError::McpError(error) if error.code == ErrorCode::METHOD_NOT_FOUND)
}

/// Subscribes to changes, and waits until the subscription ends. Returns an error if there is none.
async fn subscribe(
    peer: &Peer<RoleClient>,
    filter: SubscriptionFilter,
    tools_changed: &Notify,
) -> Result<(), ServiceError> {
    let mut subscription = peer.listen(filter).await?;
    loop {
        match subscription.next().await {
            Ok(Some(ServerNotification::ToolListChangedNotification(_))) => {
                tools_changed.notify_one();
            }
            Ok(Some(_)) => {}
            Ok(None) => return Ok(()),
            Err(error) => {
                tracing::debug!(%error, "a subscription to an MCP server failed");
                return Ok(());
            }
        }
    }
}
