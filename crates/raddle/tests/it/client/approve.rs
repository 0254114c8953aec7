//! Approvals that outlive the server that requested them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use raddle_client::protocol::{
    AskForApproval, CommandExecutionApprovalDecision, CommandExecutionRequestApprovalParams,
    ThreadStartParams, TurnStatus,
};
use raddle_client::{Client, HandlerAnswer, Options, RequestHandler, ThreadEvent};
use serde_json::json;
use tokio::sync::Semaphore;

use super::{follow_to_the_end, mock, next, serve, unix};

/// Approves every command, once it has a permit.
#[derive(Clone)]
struct ApproveAll {
    requests: Arc<AtomicUsize>,
    permits: Arc<Semaphore>,
}

impl RequestHandler for ApproveAll {
    async fn command(
        &self,
        _: CommandExecutionRequestApprovalParams,
    ) -> HandlerAnswer<CommandExecutionApprovalDecision> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.permits.acquire().await.expect("open").forget();
        HandlerAnswer::Given(CommandExecutionApprovalDecision::Accept)
    }
}

#[tokio::test]
async fn an_approval_is_put_once_and_counts_with_the_next_server() {
    let mock = mock();
    let (mut server, arguments) = serve(&mock);
    let handler = ApproveAll {
        requests: Arc::default(),
        permits: Arc::new(Semaphore::new(0)),
    };
    let address = unix(&server.socket());
    let client = Client::connect(address, Options::new("it", "1"), handler.clone()).await;
    let client = client.expect("a client");
    let params = ThreadStartParams {
        approval_policy: Some(AskForApproval::OnRequest),
        cwd: Some(server.home().display().to_string()),
        ..ThreadStartParams::default()
    };
    let mut follow = client.start(params).await.expect("a thread");
    let mark = server.home().join("mark");
    let call = json!({
        "cmd": format!("echo once >> {}", mark.display()),
        "login": false,
        "sandbox_permissions": "require_escalated",
        "justification": "May I?",
    });
    let text = format!("MOCK call name=exec_command arguments={call}");
    follow.say(text).await.expect("a turn");
    while !matches!(next(&mut follow).await, ThreadEvent::Question(_)) {}
    assert_eq!(follow.thread().questions.len(), 1);

    server.start_again(&super::borrowed(&arguments));
    while !matches!(next(&mut follow).await, ThreadEvent::Reconnected) {}
    handler.permits.add_permits(1);
    let ended = follow_to_the_end(&client, &mut follow).await;
    assert_eq!(ended, TurnStatus::Completed);
    assert_eq!(handler.requests.load(Ordering::Relaxed), 1, "asked once");
    let done = std::fs::read_to_string(mark).expect("it was done");
    assert_eq!(done, "once\n", "and done once");
    assert!(follow.thread().questions.is_empty());
    client.close().await;
    server.stop();
}
