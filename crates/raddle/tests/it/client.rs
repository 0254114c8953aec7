//! `raddle-client` on the real program: as its child, over a websocket and over a unix socket.

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

/// A message that takes its time: 400 pieces of 8 letters.
const LONG: &str = "MOCK text n=400 size=8 gap_us=2000";

/// A mock that says what the user's text asks it to.
fn mock() -> MockModel {
    MockModel::start("")
}

/// A server on a unix socket in its home, with this model.
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

async fn connect(place: ServerAddress) -> Client {
    let client = Client::connect(place, Options::new("it", "1"), RejectAll).await;
    client.expect("a client")
}

async fn start(client: &Client) -> ThreadFollower {
    let started = client.start(ThreadStartParams::default()).await;
    started.expect("a thread")
}

/// Hears until the agent has said so much.
async fn until_said(follow: &mut ThreadFollower, letters: usize) {
    let said = |follow: &ThreadFollower| follow.thread().last_message().map_or(0, str::len);
    while said(follow) < letters {
        next(follow).await;
    }
}

async fn next(follow: &mut ThreadFollower) -> ThreadEvent {
    let next = tokio::time::timeout(TEST_TIMEOUT, follow.next()).await;
    let next = next.expect("something in time").expect("no end");
    assert!(!matches!(next, ThreadEvent::Lost { .. }), "{next:?}");
    next
}

/// Hears a turn out; how it ended. What the client made of it is what the server shows.
async fn hear_out(client: &Client, follow: &mut ThreadFollower) -> TurnStatus {
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
