//! Usage of model calls without reported usage.

use raddle_core::{Event, ModelEnd, RecordBody, Seq, ThreadId};

use super::script::ScriptLine;
use super::{begin, client, execute, interrupt, journal, threads, turn, until};

#[tokio::test]
async fn an_interrupted_call_counts_prompt_and_output() {
    let journal = journal();
    let (threads, _) = threads(
        &journal,
        &[&[ScriptLine::Begins("hello"), ScriptLine::Hangs]],
    );
    let (me, mut deliveries) = client();
    let id = ThreadId::mint();
    let thread = begin(&threads, id, me).await;
    let long = "hi".repeat(2000);
    execute(&thread, turn("t1", &long)).await.expect("a turn");
    until(&mut deliveries, "item/agentMessage/delta").await;
    execute(&thread, interrupt()).await.expect("an end");
    let records = journal.read(id, Seq::ZERO, usize::MAX).await;
    let records = records.expect("records").into_iter();
    let mut ends = records.filter_map(|record| match record.body {
        RecordBody::Event(event) => match *event {
            Event::ModelEnded(it) => Some(it),
            _ => None,
        },
        RecordBody::Delta(_) => None,
    });
    let end = ends.next().expect("an end");
    assert_eq!(end.end, ModelEnd::Cancelled {});
    assert!(end.estimated);
    let usage = end.usage.expect("an estimate");
    // Four bytes count as a token, and the prompt is longer than the message.
    assert!(usage.input > 1000, "{usage:?}");
    assert_eq!(usage.output, 2);
    let received = std::iter::from_fn(|| deliveries.try_recv().ok()).collect::<Vec<_>>();
    assert!(
        !received.iter().any(|it| it.contains("tokenUsage")),
        "{received:?}"
    );
}
