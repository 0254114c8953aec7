//! Followers that take nothing for a while.

use raddle_client::protocol::methods::ThreadNameSet;
use raddle_client::protocol::{Notification, ThreadSetNameParams, ThreadStartParams};
use raddle_client::{Client, RejectAll, ThreadEvent, ThreadFollower};

use crate::harness::ClientHarness;

/// Together they are more than may wait.
const NAMES: usize = 4_200;
const NAME_BYTES: usize = 950;

async fn rename(client: &Client, follow: &ThreadFollower) {
    for at in 0..NAMES {
        let params = ThreadSetNameParams {
            thread_id: follow.id(),
            name: format!("{at} {}", "x".repeat(NAME_BYTES)),
            client_request_id: None,
        };
        client.call::<ThreadNameSet>(params).await.expect("a name");
    }
}

/// Takes everything, and looks whether each name came once and in order; how often it had to be asked for.
async fn take_all(follow: &mut ThreadFollower) -> usize {
    let (mut next, mut asked) = (0, 0);
    while next < NAMES {
        match follow.next().await.expect("a name") {
            ThreadEvent::Notification { notification, .. } => {
                if let Notification::ThreadNameUpdated(it) = *notification {
                    let name = it.thread_name.expect("a name");
                    let (at, _) = name.split_once(' ').expect("a number");
                    assert_eq!(at.parse(), Ok(next));
                    next += 1;
                }
            }
            ThreadEvent::Reconnected => asked += 1,
            ThreadEvent::Disconnected { .. } | ThreadEvent::Reset(_) | ThreadEvent::Lost { .. } => {
                panic!("cut")
            }
            ThreadEvent::Question(_) | ThreadEvent::Unknown { .. } => {}
        }
    }
    asked
}

#[tokio::test]
async fn calls_go_on_while_nothing_is_taken() {
    let stage = ClientHarness::open(&[]);
    let client = stage.client(RejectAll).await;
    let params = ThreadStartParams::default();
    let mut follow = client.start(params).await.expect("a thread");
    rename(&client, &follow).await;
    assert!(take_all(&mut follow).await > 0);
}

#[tokio::test]
async fn the_server_waits_for_one_who_takes_nothing() {
    let stage = ClientHarness::open(&[]);
    let client = stage.client(RejectAll).await;
    let params = ThreadStartParams::default();
    let mut follow = client.start(params).await.expect("a thread");
    let other = stage.client(RejectAll).await;
    rename(&other, &follow).await;
    take_all(&mut follow).await;
}

/// Each of them alone is a good part of what may wait.
const TEXT_BYTES: usize = 200 << 10;
const TEXTS: usize = 24;

/// Follows turns of long messages without taking anything, and then takes everything: each turn ends once, in order.
async fn hear_late(is_same_client: bool) {
    let text = "x".repeat(TEXT_BYTES);
    let stage = ClientHarness::open(&[&*text; TEXTS]);
    let client = stage.client(RejectAll).await;
    let params = ThreadStartParams::default();
    let mut follow = client.start(params).await.expect("a thread");
    let other = stage.client(RejectAll).await;
    let mut beside = other.open(follow.id()).await.expect("the thread");
    let mut ends = Vec::new();
    for at in 0..TEXTS {
        let teller = match is_same_client {
            true => &follow,
            false => &beside,
        };
        teller.say(format!("{at}")).await.expect("a turn");
        ends.push(beside.finish().await.expect("its end").id);
    }
    let mut heard = Vec::new();
    while heard.len() < TEXTS {
        match follow.next().await.expect("a turn") {
            ThreadEvent::Notification { notification, .. } => {
                if let Notification::TurnCompleted(it) = *notification {
                    heard.push(it.turn.id);
                }
            }
            ThreadEvent::Reconnected | ThreadEvent::Question(_) | ThreadEvent::Unknown { .. } => {}
            happening => panic!("{happening:?}"),
        }
    }
    assert_eq!(heard, ends);
    assert_eq!(follow.thread().last_message(), Some(&*text));
}

#[tokio::test]
async fn long_messages_wait_for_one_who_takes_nothing() {
    hear_late(false).await;
}

#[tokio::test]
async fn long_messages_wait_for_one_who_talks_and_takes_nothing() {
    hear_late(true).await;
}
