//! A connection that is cut anywhere.

use std::sync::Arc;

use raddle_client::protocol::methods::{ThreadDelete, ThreadList, ThreadNameSet, ThreadRevert};
use raddle_client::protocol::{Notification, ThreadStartParams};
use raddle_client::{
    CallError, Client, Options, ReconnectPolicy, RejectAll, ThreadEvent, ThreadFollower, ThreadView,
};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::harness::{ClientHarness, nowhere, shown};

/// Hears a turn out, and gives what cannot be told twice or left out, in words.
async fn hear_out(follow: &mut ThreadFollower, words: &mut Vec<String>) {
    loop {
        let happening = follow.next().await.expect("the turn ends");
        let ThreadEvent::Notification { notification, .. } = happening else {
            let is_lost = matches!(happening, ThreadEvent::Lost { .. } | ThreadEvent::Reset(_));
            assert!(!is_lost, "{happening:?}");
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

/// Two turns over connections that are cut after so many frames each; what was heard.
async fn two_turns(cuts: &[usize]) -> Vec<String> {
    let stage = ClientHarness::open(&["warp", "weft"]);
    // The first frame is the greeting, without which there is no client.
    stage.cut(cuts.iter().map(|cut| cut + 1));
    let client = stage.client(RejectAll).await;
    let mut words = Vec::new();
    let params = ThreadStartParams::default();
    let mut follow = client.start(params).await.expect("a thread");
    for text in ["one", "two"] {
        follow.say(text).await.expect("a turn");
        hear_out(&mut follow, &mut words).await;
    }
    // What the client made of it is what there is, and nothing was done twice.
    let turns = shown(&client, follow.id()).await;
    assert_eq!(follow.thread().thread.turns, turns, "{cuts:?}");
    assert_eq!(turns.len(), 2, "{cuts:?}");
    assert_eq!(follow.thread().last_message(), Some("weft"));
    assert_eq!(follow.thread().running(), None::<_>);
    let list = serde_json::from_value(json!({})).expect("params");
    let list = client.call::<ThreadList>(list).await.expect("threads");
    assert_eq!(list.data.len(), 1, "{cuts:?}");
    client.close().await;
    words
}

#[tokio::test]
async fn wherever_the_connection_is_cut_each_happens_once() {
    let whole = two_turns(&[]).await;
    assert!(whole.len() > 7, "{whole:?}");
    for cut in 0..40 {
        let words = two_turns(&[cut]).await;
        assert_eq!(words, whole, "cut after {cut}");
    }
    // And again as soon as it is back.
    for cut in 0..8 {
        let words = two_turns(&[5, cut, cut + 1]).await;
        assert_eq!(words, whole, "cut again after {cut}");
    }
}

/// What was told of a turn that does not end, by connections that are cut after so many frames each.
async fn begun(cuts: [usize; 3]) -> Vec<String> {
    let stage = ClientHarness::open(&["warp…"]);
    stage.cut(cuts);
    let client = stage.client(RejectAll).await;
    let params = ThreadStartParams::default();
    let mut follow = client.start(params).await.expect("a thread");
    follow.say("one").await.expect("a turn");
    let mut begun = Vec::new();
    let mut is_named = false;
    loop {
        let happening = follow.next().await.expect("more");
        let ThreadEvent::Notification { notification, .. } = happening else {
            continue;
        };
        match *notification {
            Notification::TurnStarted(_) | Notification::ItemStarted(_) => {
                begun.push(format!("{notification:?}"));
            }
            Notification::AgentMessageDelta(_) => {
                begun.push(format!("{notification:?}"));
                // The last word, whenever it comes.
                if !std::mem::replace(&mut is_named, true) {
                    let params = json!({"threadId": follow.id(), "name": "end"});
                    let params = serde_json::from_value(params).expect("params");
                    client.call::<ThreadNameSet>(params).await.expect("a name");
                }
            }
            Notification::ThreadNameUpdated(_) => return begun,
            _ => {}
        }
    }
}

#[tokio::test]
async fn what_was_told_without_a_number_is_not_told_again_after_a_second_cut() {
    for first in 4..16 {
        for second in 2..7 {
            let mut begun = begun([first, second, second]).await;
            let count = begun.len();
            begun.sort();
            begun.dedup();
            assert_eq!(begun.len(), count, "cut after {first}, {second}: {begun:?}");
        }
    }
}

#[tokio::test]
async fn what_is_gone_back_to_is_shown_anew() {
    let stage = ClientHarness::open(&["warp", "weft"]);
    let client = stage.client(RejectAll).await;
    let params = ThreadStartParams::default();
    let mut follow = client.start(params).await.expect("a thread");
    let first = {
        follow.say("one").await.expect("a turn");
        follow.finish().await.expect("its end")
    };
    follow.say("two").await.expect("a turn");
    let second = follow.finish().await.expect("its end");
    let params = json!({"threadId": follow.id(), "beforeTurnId": second.id});
    let params = serde_json::from_value(params).expect("params");
    client.call::<ThreadRevert>(params).await.expect("done");
    while !matches!(follow.next().await, Some(ThreadEvent::Reset(_))) {}
    assert_eq!(follow.thread().thread.turns, vec![first]);
    assert_eq!(
        follow.thread().thread.turns,
        shown(&client, follow.id()).await
    );
}

/// Who comes back to a thread that has not what was seen of it begins anew.
#[tokio::test]
async fn what_was_made_anew_meanwhile_is_shown_anew() {
    let stage = ClientHarness::open(&["warp", "weft"]);
    // So much that the first turn has begun.
    stage.cut([8]);
    let leave = Arc::new(Semaphore::new(1));
    let options = Options::new("it", "1");
    let client = Client::connect(stage.gated(&leave), options, RejectAll).await;
    let client = client.expect("a client");
    let params = ThreadStartParams {
        client_request_id: Some("k".to_owned()),
        ..ThreadStartParams::default()
    };
    let mut follow = client.start(params.clone()).await.expect("a thread");
    let other = stage.client(RejectAll).await;
    // So much that it is never cut again.
    stage.cut([1000]);
    let mut beside = other.open(follow.id()).await.expect("the thread");
    beside.say("one").await.expect("a turn");
    beside.finish().await.expect("its end");
    while !matches!(follow.next().await, Some(ThreadEvent::Disconnected { .. })) {}
    assert_eq!(follow.thread().thread.turns.len(), 1, "it saw a part of it");

    let delete = serde_json::from_value(json!({"threadId": follow.id()})).expect("params");
    other.call::<ThreadDelete>(delete).await.expect("done");
    while beside.next().await.is_some() {}
    let beside = other.start(params).await.expect("a thread");
    assert_eq!(beside.id(), follow.id());
    leave.add_permits(1);
    let next = follow.next().await;
    assert!(matches!(next, Some(ThreadEvent::Reset(_))), "{next:?}");
    assert_eq!(stage.said("\"afterSeq\""), 1, "it asked for the rest");
    assert_eq!(follow.thread().thread.turns, Vec::new());
    beside.say("two").await.expect("a turn");
    follow.finish().await.expect("its end");
    assert_eq!(follow.thread().last_message(), Some("weft"));
    let turns = shown(&other, follow.id()).await;
    assert_eq!(follow.thread().thread.turns, turns);
}

#[tokio::test]
async fn whoever_may_not_come_back_is_told_so() {
    let stage = ClientHarness::open(&["warp"]);
    let mut options = Options::new("it", "1");
    options.reconnect = ReconnectPolicy::NEVER;
    stage.cut([3]);
    let client = stage.client_with(options, RejectAll).await;
    let params = ThreadStartParams::default();
    let mut follow = client.start(params).await.expect("a thread");
    let said = follow.say("one").await;
    let mut last = None;
    while let Some(happening) = follow.next().await {
        last = Some(happening);
    }
    assert!(matches!(last, Some(ThreadEvent::Lost { .. })), "{last:?}");
    assert!(matches!(said, Err(CallError::Closed(_))), "{said:?}");
    let again = client.start(ThreadStartParams::default()).await;
    assert!(matches!(again, Err(CallError::Closed(_))), "{again:?}");
    client.close().await;
}

#[tokio::test]
async fn a_thread_is_followed_once_by_one_client() {
    let stage = ClientHarness::open(&[]);
    let client = stage.client(RejectAll).await;
    let params = ThreadStartParams::default();
    let follow = client.start(params).await.expect("a thread");
    let thread = follow.id();
    let again = client.open(thread).await;
    assert!(
        matches!(again, Err(CallError::AlreadyFollowed)),
        "{again:?}"
    );
    drop(follow);
    // The first is let go of when the task has looked, which it does before it is asked for more.
    let mut again = client.open(thread).await.expect("the thread");
    let other = stage.client(RejectAll).await;
    let mut beside = other.open(thread).await.expect("the thread");
    again.say("one").await.expect("a turn");
    again.finish().await.expect("its end");
    beside.finish().await.expect("its end");
    let turns = |view: &ThreadView| view.thread.turns.clone();
    assert_eq!(turns(again.thread()), turns(beside.thread()));
}

#[tokio::test]
async fn a_thread_left_while_the_connection_is_gone_can_be_opened_again() {
    let stage = ClientHarness::open(&["warp"]);
    // The greeting and the thread.
    stage.cut([2]);
    let client = stage.client(RejectAll).await;
    let params = ThreadStartParams::default();
    let mut follow = client.start(params).await.expect("a thread");
    let thread = follow.id();
    while !matches!(follow.next().await, Some(ThreadEvent::Disconnected { .. })) {}
    drop(follow);
    let mut again = client.open(thread).await.expect("the thread");
    again.say("one").await.expect("a turn");
    again.finish().await.expect("its end");
    assert_eq!(again.thread().last_message(), Some("warp"));
}

#[tokio::test]
async fn where_nobody_is_there_is_no_client() {
    let client =
        raddle_client::Client::connect(nowhere(), Options::new("it", "1"), RejectAll).await;
    let error = client.expect_err("nobody");
    assert!(error.to_string().contains("cannot be reached"), "{error}");
}
