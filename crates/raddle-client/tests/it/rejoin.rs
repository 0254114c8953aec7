//! A connection that is cut at any point.

use std::sync::Arc;

use raddle_client::protocol::methods::{ThreadDelete, ThreadList, ThreadNameSet, ThreadRevert};
use raddle_client::protocol::{Notification, ThreadStartParams};
use raddle_client::{
    CallError, Client, Options, ReconnectPolicy, RejectAll, ThreadEvent, ThreadFollower, ThreadView,
};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::harness::{ClientHarness, read_turns, unreachable_address};

/// Follows a turn to its end, and appends the methods of notifications that must arrive exactly
/// once.
async fn collect_turn(follower: &mut ThreadFollower, words: &mut Vec<String>) {
    loop {
        let event = follower.next().await.expect("the turn ends");
        let ThreadEvent::Notification { notification, .. } = event else {
            let is_lost = matches!(event, ThreadEvent::Lost { .. } | ThreadEvent::Reset(_));
            assert!(!is_lost, "{event:?}");
            continue;
        };
        let is_kept = matches!(
            *notification,
            Notification::ThreadStarted(_)
                | Notification::TurnStarted(_)
                | Notification::ItemCompleted(_)
                | Notification::TurnCompleted(_)
        );
        words.extend(is_kept.then(|| notification.method().to_owned()));
        if let Notification::TurnCompleted(_) = *notification {
            return;
        }
    }
}

/// Runs two turns over connections that are cut after this many frames each. Returns the methods of
/// the notifications.
async fn two_turns(cuts: &[usize]) -> Vec<String> {
    let harness = ClientHarness::open(&["warp", "weft"]);
    // The first frame is the response to `initialize`, without which there is no client.
    harness.cut(cuts.iter().map(|cut| cut + 1));
    let client = harness.client(RejectAll).await;
    let mut words = Vec::new();
    let params = ThreadStartParams::default();
    let mut follower = client.start(params).await.expect("a thread");
    for text in ["one", "two"] {
        follower.say(text).await.expect("a turn");
        collect_turn(&mut follower, &mut words).await;
    }
    // The view equals the server's state, and nothing was executed twice.
    let turns = read_turns(&client, follower.id()).await;
    assert_eq!(follower.thread().thread.turns, turns, "{cuts:?}");
    assert_eq!(turns.len(), 2, "{cuts:?}");
    assert_eq!(follower.thread().last_message(), Some("weft"));
    assert_eq!(follower.thread().running(), None::<_>);
    let list = serde_json::from_value(json!({})).expect("params");
    let list = client.call::<ThreadList>(list).await.expect("threads");
    assert_eq!(list.data.len(), 1, "{cuts:?}");
    client.close().await;
    words
}

#[tokio::test]
async fn each_event_arrives_once_wherever_the_connection_is_cut() {
    let whole = two_turns(&[]).await;
    assert!(whole.len() > 7, "{whole:?}");
    for cut in 0..40 {
        let words = two_turns(&[cut]).await;
        assert_eq!(words, whole, "cut after {cut}");
    }
    // And again right after the reconnect.
    for cut in 0..8 {
        let words = two_turns(&[5, cut, cut + 1]).await;
        assert_eq!(words, whole, "cut again after {cut}");
    }
}

/// Notifications of an unfinished turn, over connections that are cut after this many frames each.
async fn unfinished_turn(cuts: [usize; 3]) -> Vec<String> {
    let harness = ClientHarness::open(&["warp…"]);
    harness.cut(cuts);
    let client = harness.client(RejectAll).await;
    let params = ThreadStartParams::default();
    let mut follower = client.start(params).await.expect("a thread");
    follower.say("one").await.expect("a turn");
    let mut notifications = Vec::new();
    let mut is_named = false;
    loop {
        let event = follower.next().await.expect("more");
        let ThreadEvent::Notification { notification, .. } = event else {
            continue;
        };
        match *notification {
            Notification::TurnStarted(_) | Notification::ItemStarted(_) => {
                notifications.push(format!("{notification:?}"));
            }
            Notification::AgentMessageDelta(_) => {
                notifications.push(format!("{notification:?}"));
                // The rename marks the end of what the test collects.
                if !std::mem::replace(&mut is_named, true) {
                    let params = json!({"threadId": follower.id(), "name": "end"});
                    let params = serde_json::from_value(params).expect("params");
                    client.call::<ThreadNameSet>(params).await.expect("a name");
                }
            }
            Notification::ThreadNameUpdated(_) => return notifications,
            _ => {}
        }
    }
}

#[tokio::test]
async fn unnumbered_notifications_are_not_repeated_after_a_second_cut() {
    for first in 4..16 {
        for second in 2..7 {
            let mut notifications = unfinished_turn([first, second, second]).await;
            let count = notifications.len();
            notifications.sort();
            notifications.dedup();
            assert_eq!(
                notifications.len(),
                count,
                "cut after {first}, {second}: {notifications:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_reverted_thread_is_reset() {
    let harness = ClientHarness::open(&["warp", "weft"]);
    let client = harness.client(RejectAll).await;
    let params = ThreadStartParams::default();
    let mut follower = client.start(params).await.expect("a thread");
    let first = {
        follower.say("one").await.expect("a turn");
        follower.finish().await.expect("its end")
    };
    follower.say("two").await.expect("a turn");
    let second = follower.finish().await.expect("its end");
    let params = json!({"threadId": follower.id(), "beforeTurnId": second.id});
    let params = serde_json::from_value(params).expect("params");
    client.call::<ThreadRevert>(params).await.expect("done");
    while !matches!(follower.next().await, Some(ThreadEvent::Reset(_))) {}
    assert_eq!(follower.thread().thread.turns, vec![first]);
    assert_eq!(
        follower.thread().thread.turns,
        read_turns(&client, follower.id()).await
    );
}

/// A client that resumes a thread which was created anew meanwhile receives a reset.
#[tokio::test]
async fn a_thread_created_anew_meanwhile_is_reset() {
    let harness = ClientHarness::open(&["warp", "weft"]);
    // Enough frames for the first turn to begin.
    harness.cut([8]);
    let permits = Arc::new(Semaphore::new(1));
    let options = Options::new("it", "1");
    let client = Client::connect(harness.gated(&permits), options, RejectAll).await;
    let client = client.expect("a client");
    let params = ThreadStartParams {
        client_request_id: Some("k".to_owned()),
        ..ThreadStartParams::default()
    };
    let mut follower = client.start(params.clone()).await.expect("a thread");
    let other = harness.client(RejectAll).await;
    // More frames than the rest of the test needs.
    harness.cut([1000]);
    let mut other_follower = other.open(follower.id()).await.expect("the thread");
    other_follower.say("one").await.expect("a turn");
    other_follower.finish().await.expect("its end");
    while !matches!(
        follower.next().await,
        Some(ThreadEvent::Disconnected { .. })
    ) {}
    assert_eq!(
        follower.thread().thread.turns.len(),
        1,
        "it saw a part of it"
    );

    let delete = serde_json::from_value(json!({"threadId": follower.id()})).expect("params");
    other.call::<ThreadDelete>(delete).await.expect("done");
    while other_follower.next().await.is_some() {}
    let other_follower = other.start(params).await.expect("a thread");
    assert_eq!(other_follower.id(), follower.id());
    permits.add_permits(1);
    let next = follower.next().await;
    assert!(matches!(next, Some(ThreadEvent::Reset(_))), "{next:?}");
    assert_eq!(
        harness.count_requests("\"afterSeq\""),
        1,
        "it asked for the rest"
    );
    assert_eq!(follower.thread().thread.turns, Vec::new());
    other_follower.say("two").await.expect("a turn");
    follower.finish().await.expect("its end");
    assert_eq!(follower.thread().last_message(), Some("weft"));
    let turns = read_turns(&other, follower.id()).await;
    assert_eq!(follower.thread().thread.turns, turns);
}

#[tokio::test]
async fn without_reconnection_the_follower_is_lost() {
    let harness = ClientHarness::open(&["warp"]);
    let mut options = Options::new("it", "1");
    options.reconnect = ReconnectPolicy::NEVER;
    harness.cut([3]);
    let client = harness.client_with(options, RejectAll).await;
    let params = ThreadStartParams::default();
    let mut follower = client.start(params).await.expect("a thread");
    let result = follower.say("one").await;
    let mut last = None;
    while let Some(event) = follower.next().await {
        last = Some(event);
    }
    assert!(matches!(last, Some(ThreadEvent::Lost { .. })), "{last:?}");
    assert!(matches!(result, Err(CallError::Closed(_))), "{result:?}");
    let again = client.start(ThreadStartParams::default()).await;
    assert!(matches!(again, Err(CallError::Closed(_))), "{again:?}");
    client.close().await;
}

#[tokio::test]
async fn a_thread_is_followed_once_by_one_client() {
    let harness = ClientHarness::open(&[]);
    let client = harness.client(RejectAll).await;
    let params = ThreadStartParams::default();
    let follower = client.start(params).await.expect("a thread");
    let thread = follower.id();
    let error = client.open(thread).await.expect_err("followed already");
    assert!(matches!(error, CallError::AlreadyFollowed), "{error:?}");
    let text = "this client already follows the thread; use that follower, or drop it first";
    assert_eq!(error.to_string(), text);
    drop(follower);
    // The task removes the dropped follower before it executes the next command.
    let mut again = client.open(thread).await.expect("the thread");
    let other = harness.client(RejectAll).await;
    let mut other_follower = other.open(thread).await.expect("the thread");
    again.say("one").await.expect("a turn");
    again.finish().await.expect("its end");
    other_follower.finish().await.expect("its end");
    let turns = |view: &ThreadView| view.thread.turns.clone();
    assert_eq!(turns(again.thread()), turns(other_follower.thread()));
}

#[tokio::test]
async fn a_thread_left_while_the_connection_is_gone_can_be_opened_again() {
    let harness = ClientHarness::open(&["warp"]);
    // The responses to `initialize` and `thread/start`.
    harness.cut([2]);
    let client = harness.client(RejectAll).await;
    let params = ThreadStartParams::default();
    let mut follower = client.start(params).await.expect("a thread");
    let thread = follower.id();
    while !matches!(
        follower.next().await,
        Some(ThreadEvent::Disconnected { .. })
    ) {}
    drop(follower);
    let mut again = client.open(thread).await.expect("the thread");
    again.say("one").await.expect("a turn");
    again.finish().await.expect("its end");
    assert_eq!(again.thread().last_message(), Some("warp"));
}

#[tokio::test]
async fn connecting_without_a_server_fails() {
    let client =
        raddle_client::Client::connect(unreachable_address(), Options::new("it", "1"), RejectAll)
            .await;
    let error = client.expect_err("no server listens");
    assert!(error.to_string().contains("cannot be reached"), "{error}");
}
