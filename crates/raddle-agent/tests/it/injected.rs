//! History that is injected into the thread.

use raddle_core::{Command, InjectItems, InjectedItem, Input, ThreadId};

use crate::script::ScriptLine;
use crate::{begin, client, execute, journal, threads, turn, until};

fn inject(text: &str) -> Command {
    let user = InjectedItem::User {
        input: vec![Input::text(text)],
    };
    let assistant = InjectedItem::Assistant {
        text: format!("{text} indeed"),
    };
    Command::InjectItems(InjectItems {
        items: vec![user, assistant],
        principal: None,
    })
}

#[tokio::test]
async fn injected_history_is_read_by_the_next_process() {
    let journal = journal();
    let id = ThreadId::mint();
    let (first, _) = threads(&journal, &[]);
    let thread = begin(&first, id, client().0).await;
    execute(&thread, inject("green")).await.expect("stored");
    first.close().await;

    let (second, script) = threads(&journal, &[&[ScriptLine::Says("so it is")]]);
    let thread = second.get(id).await.expect("the thread");
    let (me, mut deliveries) = client();
    crate::subscribe(&thread, me).await;
    execute(&thread, turn("t1", "is it?"))
        .await
        .expect("a turn");
    until(&mut deliveries, "turn/completed").await;
    assert_eq!(
        script.prompts(),
        ["user green · assistant green indeed · user is it?"]
    );
}
