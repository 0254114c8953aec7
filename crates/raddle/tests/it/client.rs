//! `raddle-client` with the real binary: as its child, over a websocket and over a Unix socket.

mod approve;
mod child;
mod cut;
mod examples;

use std::path::Path;

use raddle_client::protocol::methods::ThreadRead;
use raddle_client::protocol::{ThreadReadParams, ThreadStartParams, TurnStatus};
use raddle_client::{Client, Options, RejectAll, ServerAddress, ThreadEvent, ThreadFollower};

use crate::model::MockModel;
use crate::support::TEST_TIMEOUT;
use crate::support::server::TestServer;

/// A slow message: 400 pieces of 8 characters.
const LONG: &str = "MOCK text n=400 size=8 gap_us=2000";

/// A mock that follows the directives in the user's text.
fn mock() -> MockModel {
    MockModel::start("")
}

/// A server on a Unix socket in its home, with this model.
fn serve(mock: &MockModel) -> (TestServer, Vec<String>) {
    let mut arguments = mock.arguments(&[]);
    arguments.extend(["--listen", "unix://"].map(str::to_owned));
    (TestServer::start(&borrowed(&arguments)), arguments)
}

fn borrowed(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

fn unix(path: &Path) -> ServerAddress {
    ServerAddress::Unix(path.to_owned())
}

async fn connect(address: ServerAddress) -> Client {
    let client = Client::connect(address, Options::new("it", "1"), RejectAll).await;
    client.expect("a client")
}

async fn start(client: &Client) -> ThreadFollower {
    let started = client.start(ThreadStartParams::default()).await;
    started.expect("a thread")
}

/// Follows the thread until the agent has written so many characters.
async fn follow_until(follow: &mut ThreadFollower, letters: usize) {
    let length = |follow: &ThreadFollower| follow.thread().last_message().map_or(0, str::len);
    while length(follow) < letters {
        next(follow).await;
    }
}

async fn next(follow: &mut ThreadFollower) -> ThreadEvent {
    let next = tokio::time::timeout(TEST_TIMEOUT, follow.next()).await;
    let next = next.expect("something in time").expect("no end");
    assert!(!matches!(next, ThreadEvent::Lost { .. }), "{next:?}");
    next
}

/// Follows a turn to its end and returns its status. The client's view must equal the server's.
async fn follow_to_the_end(client: &Client, follow: &mut ThreadFollower) -> TurnStatus {
    let finish = tokio::time::timeout(TEST_TIMEOUT, follow.finish()).await;
    let turn = finish.expect("an end in time").expect("an end");
    let params = ThreadReadParams {
        thread_id: follow.id(),
        include_turns: true,
    };
    let shown = client.call::<ThreadRead>(params).await.expect("the thread");
    assert_eq!(follow.thread().thread.turns, shown.thread.turns);
    turn.status
}
