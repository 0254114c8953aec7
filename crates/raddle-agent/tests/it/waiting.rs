//! Turns that begin by themselves.

use raddle_core::{Command, Enqueue, Input, InputMessage, ThreadId};

use crate::script::ScriptLine;
use crate::{begin, client, journal, order, subscribe, threads, turn, until};

#[tokio::test]
async fn what_waits_becomes_a_turn_in_another_process() {
    let journal = journal();
    let id = ThreadId::mint();
    let (first, _) = threads(&journal, &[&[ScriptLine::Begins("hel"), ScriptLine::Hangs]]);
    let (me, mut hears) = client();
    let thread = begin(&first, id, me).await;
    order(&thread, turn("t1", "hi")).await.expect("a turn");
    until(&mut hears, "item/agentMessage/delta").await;
    let message = InputMessage {
        item: "q1".into(),
        input: vec![Input::text("and then?")],
        client_id: None,
    };
    let enqueue = Command::Enqueue(Enqueue {
        message,
        principal: None,
    });
    order(&thread, enqueue).await.expect("stored");
    first.close().await;

    let (second, script) = threads(
        &journal,
        &[&[ScriptLine::Says("hello")], &[ScriptLine::Says("bye")]],
    );
    let thread = second.get(id).await.expect("the thread");
    let (me, mut hears) = client();
    subscribe(&thread, me).await;
    until(&mut hears, "thread/queue/changed").await;
    until(&mut hears, "turn/completed").await;
    let last = script.prompts().pop().expect("a prompt");
    assert!(last.ends_with("assistant hello · user and then?"), "{last}");
}
