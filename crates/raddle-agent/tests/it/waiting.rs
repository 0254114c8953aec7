//! Turns that start by themselves.

use raddle_core::{Command, Enqueue, Input, InputMessage, ThreadId};

use crate::script::ScriptLine;
use crate::{begin, client, execute, journal, subscribe, threads, turn, until};

#[tokio::test]
async fn a_queued_message_becomes_a_turn_in_another_process() {
    let journal = journal();
    let id = ThreadId::mint();
    let (first, _) = threads(&journal, &[&[ScriptLine::Begins("hel"), ScriptLine::Hangs]]);
    let (me, mut deliveries) = client();
    let thread = begin(&first, id, me).await;
    execute(&thread, turn("t1", "hi")).await.expect("a turn");
    until(&mut deliveries, "item/agentMessage/delta").await;
    let message = InputMessage {
        item: "q1".into(),
        input: vec![Input::text("and then?")],
        client_id: None,
        hook_prompt: None,
    };
    let enqueue = Command::Enqueue(Enqueue {
        message,
        principal: None,
    });
    execute(&thread, enqueue).await.expect("stored");
    first.close().await;

    let (second, script) = threads(
        &journal,
        &[&[ScriptLine::Says("hello")], &[ScriptLine::Says("bye")]],
    );
    let thread = second.get(id).await.expect("the thread");
    let (me, mut deliveries) = client();
    subscribe(&thread, me).await;
    until(&mut deliveries, "thread/queue/changed").await;
    until(&mut deliveries, "turn/completed").await;
    let last = script.prompts().pop().expect("a prompt");
    assert!(last.ends_with("assistant hello · user and then?"), "{last}");
}
