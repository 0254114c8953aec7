//! Followers that read nothing for a while.

use raddle_client::protocol::methods::ThreadNameSet;
use raddle_client::protocol::{Notification, ThreadSetNameParams, ThreadStartParams};
use raddle_client::{Client, RejectAll, ThreadEvent, ThreadFollower};

use crate::harness::ClientHarness;

/// Together they exceed the limit of the queue.
const NAMES: usize = 4_200;
const NAME_BYTES: usize = 950;

async fn rename(client: &Client, follower: &ThreadFollower) {
    for at in 0..NAMES {
        let params = ThreadSetNameParams {
            thread_id: follower.id(),
            name: format!("{at} {}", "x".repeat(NAME_BYTES)),
            client_request_id: None,
        };
        client.call::<ThreadNameSet>(params).await.expect("a name");
    }
}

/// Reads everything, and checks that each name came once and in order. Returns the number of
/// resumes.
async fn take_all(follower: &mut ThreadFollower) -> usize {
    let (mut next, mut resumes) = (0, 0);
    while next < NAMES {
        match follower.next().await.expect("a name") {
            ThreadEvent::Notification { notification, .. } => {
                if let Notification::ThreadNameUpdated(it) = *notification {
                    let name = it.thread_name.expect("a name");
                    let (at, _) = name.split_once(' ').expect("a number");
                    assert_eq!(at.parse(), Ok(next));
                    next += 1;
                }
            }
            ThreadEvent::Reconnected => resumes += 1,
            ThreadEvent::Disconnected { .. } | ThreadEvent::Reset(_) | ThreadEvent::Lost { .. } => {
                panic!("cut")
            }
            ThreadEvent::Question(_) | ThreadEvent::Unknown { .. } => {}
        }
    }
    resumes
}

#[tokio::test]
async fn calls_continue_while_a_follower_reads_nothing() {
    let harness = ClientHarness::open(&[]);
    let client = harness.client(RejectAll).await;
    let params = ThreadStartParams::default();
    let mut follower = client.start(params).await.expect("a thread");
    rename(&client, &follower).await;
    assert!(take_all(&mut follower).await > 0);
}

#[tokio::test]
async fn the_server_waits_for_a_client_that_reads_nothing() {
    let harness = ClientHarness::open(&[]);
    let client = harness.client(RejectAll).await;
    let params = ThreadStartParams::default();
    let mut follower = client.start(params).await.expect("a thread");
    let other = harness.client(RejectAll).await;
    rename(&other, &follower).await;
    take_all(&mut follower).await;
}

/// Each of them alone is a large part of the queue's limit.
const TEXT_BYTES: usize = 200 << 10;
const TEXTS: usize = 24;

/// Follows turns with long messages without reading, and then reads everything: each turn completes
/// once, in order.
async fn read_late(is_same_client: bool) {
    let text = "x".repeat(TEXT_BYTES);
    let harness = ClientHarness::open(&[&*text; TEXTS]);
    let client = harness.client(RejectAll).await;
    let params = ThreadStartParams::default();
    let mut follower = client.start(params).await.expect("a thread");
    let other = harness.client(RejectAll).await;
    let mut other_follower = other.open(follower.id()).await.expect("the thread");
    let mut ends = Vec::new();
    for at in 0..TEXTS {
        let sender = match is_same_client {
            true => &follower,
            false => &other_follower,
        };
        sender.say(format!("{at}")).await.expect("a turn");
        ends.push(other_follower.finish().await.expect("its end").id);
    }
    let mut completed = Vec::new();
    while completed.len() < TEXTS {
        match follower.next().await.expect("a turn") {
            ThreadEvent::Notification { notification, .. } => {
                if let Notification::TurnCompleted(it) = *notification {
                    completed.push(it.turn.id);
                }
            }
            ThreadEvent::Reconnected | ThreadEvent::Question(_) | ThreadEvent::Unknown { .. } => {}
            event => panic!("{event:?}"),
        }
    }
    assert_eq!(completed, ends);
    assert_eq!(follower.thread().last_message(), Some(&*text));
}

#[tokio::test]
async fn long_messages_wait_for_a_follower_that_reads_nothing() {
    read_late(false).await;
}

#[tokio::test]
async fn long_messages_wait_for_a_follower_that_sends_and_reads_nothing() {
    read_late(true).await;
}
