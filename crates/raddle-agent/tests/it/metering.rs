//! What calls of the model used, where nobody says.

use raddle_core::{Event, ModelEnd, RecordBody, Seq, ThreadId};

use super::script::ScriptLine;
use super::{begin, client, interrupt, journal, order, threads, turn, until};

#[tokio::test]
async fn a_call_that_is_cut_off_counts_what_was_sent_and_what_came() {
    let journal = journal();
    let (threads, _) = threads(
        &journal,
        &[&[ScriptLine::Begins("hello"), ScriptLine::Hangs]],
    );
    let (me, mut hears) = client();
    let id = ThreadId::mint();
    let thread = begin(&threads, id, me).await;
    let long = "hi".repeat(2000);
    order(&thread, turn("t1", &long)).await.expect("a turn");
    until(&mut hears, "item/agentMessage/delta").await;
    order(&thread, interrupt()).await.expect("an end");
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
    // Four letters are a token, and there is more to read than the message.
    assert!(usage.input > 1000, "{usage:?}");
    assert_eq!(usage.output, 2);
    let heard = std::iter::from_fn(|| hears.try_recv().ok()).collect::<Vec<_>>();
    assert!(
        !heard.iter().any(|it| it.contains("tokenUsage")),
        "{heard:?}"
    );
}
