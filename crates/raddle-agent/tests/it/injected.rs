//! History that did not happen in the thread.

use raddle_core::{Command, InjectItems, InjectedItem, Input, ThreadId};

use crate::script::ScriptLine;
use crate::{begin, client, journal, order, threads, turn, until};

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
async fn it_is_read_by_whoever_opens_the_thread_next() {
    let journal = journal();
    let id = ThreadId::mint();
    let (first, _) = threads(&journal, &[]);
    let thread = begin(&first, id, client().0).await;
    order(&thread, inject("green")).await.expect("stored");
    first.close().await;

    let (second, script) = threads(&journal, &[&[ScriptLine::Says("so it is")]]);
    let thread = second.get(id).await.expect("the thread");
    let (me, mut hears) = client();
    crate::subscribe(&thread, me).await;
    order(&thread, turn("t1", "is it?")).await.expect("a turn");
    until(&mut hears, "turn/completed").await;
    assert_eq!(
        script.prompts(),
        ["user green · assistant green indeed · user is it?"]
    );
}
