//! The log of turns: their spans, and the line at their end.

use std::sync::{Arc, Mutex};

use raddle_agent::{Options, Threads};
use raddle_core::ports::Journal;
use raddle_core::{Recovery, ThreadId};
use raddle_store::{FaultMode, FaultyJournal};
use tokio::sync::oneshot;
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id};
use tracing::{Instrument, Subscriber, info_span};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};

use super::memory_log::MemoryLog;
use super::script::{ScriptLine, ScriptedAnswers};
use super::{begin, client, execute, interrupt, journal, options, rename, threads, turn, until};

#[tokio::test]
async fn the_end_of_a_turn_names_the_request_that_started_it() {
    let log = MemoryLog::start();
    let says: &[ScriptLine] = &[ScriptLine::Says("hello")];
    let (threads, _) = threads(&journal(), &[says, says]);
    let (me, mut deliveries) = client();
    let id = ThreadId::mint();
    let thread = begin(&threads, id, me).await;
    for (name, request) in [("t1", Some(7)), ("t2", None)] {
        let span = match request {
            Some(request) => info_span!("request", id = request),
            None => tracing::Span::none(),
        };
        let started = execute(&thread, turn(name, "hi")).instrument(span);
        started.await.expect("a turn");
        until(&mut deliveries, "turn/completed").await;
    }
    let rest = "turn ended outcome=\"completed\" duration_ms=0 input_tokens=0 cached_tokens=0 output_tokens=0";
    assert_eq!(
        log.lines_with("turn ended"),
        [
            format!("request{{id=7}}:thread{{id={id}}}:turn{{id=t1}}: {rest}"),
            format!("thread{{id={id}}}:turn{{id=t2}}: {rest}"),
        ]
    );
}

/// The first turn ends before it is stored, so both turns start in one batch.
#[tokio::test]
async fn each_turn_of_a_batch_names_its_own_request() {
    let log = MemoryLog::start();
    let journal = Arc::new(FaultyJournal::new());
    let port: Arc<dyn Journal> = journal.clone();
    let (threads, _) = threads(&port, &[&[ScriptLine::Says("hello")]]);
    let (me, mut deliveries) = client();
    let id = ThreadId::mint();
    let thread = begin(&threads, id, me).await;
    journal.set(FaultMode::Slow);
    thread.send_command(rename(Some("a")), |_| {}).await;
    // The commands that arrive during this write are decided together after it.
    while journal.waiting() == 0 {
        tokio::task::yield_now().await;
    }
    let commands = [
        (7, turn("t1", "hi")),
        (8, interrupt()),
        (9, turn("t2", "hi")),
    ];
    for (request, command) in commands {
        let sent = thread.send_command(command, |_| {});
        sent.instrument(info_span!("request", id = request)).await;
    }
    journal.set(FaultMode::Healthy);
    for _ in ["t1", "t2"] {
        until(&mut deliveries, "turn/completed").await;
    }
    let lines = log.lines_with("turn ended");
    let starts = lines.iter().map(|it| it.split(" duration_ms").next());
    let starts: Vec<_> = starts.collect();
    let expected = [(7, "t1", "interrupted"), (9, "t2", "completed")];
    let expected = expected.map(|(request, turn, outcome)| {
        format!(
            "request{{id={request}}}:thread{{id={id}}}:turn{{id={turn}}}: turn ended outcome={outcome:?}"
        )
    });
    assert_eq!(starts, expected.each_ref().map(|it| Some(it.as_str())));
}

/// A filter may exclude the span of the thread. The reply is then in the span of its caller.
#[tokio::test]
async fn a_reply_is_logged_in_the_span_of_its_caller() {
    for filter in ["info", "info,raddle_agent=warn"] {
        let log = MemoryLog::with_filter(filter);
        let (threads, _) = threads(&journal(), &[]);
        let (me, _deliveries) = client();
        let id = ThreadId::mint();
        let thread = begin(&threads, id, me).await;
        let (replied, reply) = oneshot::channel();
        let on_reply = move |outcome: Result<_, _>| {
            tracing::info!("replied");
            drop(replied.send(outcome));
        };
        let sent = thread.send_command(rename(Some("a")), on_reply);
        sent.instrument(info_span!("request", id = 7)).await;
        reply.await.expect("a reply").expect("a name");
        let span = match filter {
            "info" => format!(":thread{{id={id}}}"),
            _ => String::new(),
        };
        let expected = format!("request{{id=7}}{span}: replied");
        assert_eq!(log.lines_with("replied"), [expected], "{filter}");
    }
}

#[tokio::test]
async fn a_turn_that_its_next_owner_ends_is_logged_once() {
    let log = MemoryLog::start();
    let (journal, id) = (journal(), ThreadId::mint());
    let (first, _) = threads(
        &journal,
        &[&[ScriptLine::Begins("hello"), ScriptLine::Hangs]],
    );
    let (me, mut deliveries) = client();
    let thread = begin(&first, id, me).await;
    let started = execute(&thread, turn("t1", "hi")).instrument(info_span!("request", id = 7));
    started.await.expect("a turn");
    until(&mut deliveries, "item/agentMessage/delta").await;
    assert_eq!(log.lines_with("turn ended"), Vec::<String>::new());

    // The first owner does not write any more, as if it were dead.
    let second = Threads::new(Options {
        recovery: Recovery::Interrupt,
        ..options(&journal, Arc::new(ScriptedAnswers::new(&[])))
    });
    let thread = second.get(id).await.expect("the thread");
    let runs = thread.inspect(|thread| thread.turn().is_some()).await;
    assert_eq!(runs, Ok(false));
    let lines = log.lines_with("turn ended");
    let expected = format!(
        "thread{{id={id}}}:turn{{id=t1}}: turn ended outcome=\"interrupted\" duration_ms=0 "
    );
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with(&expected), "{lines:?}");
}

/// Collects the names of new spans.
struct SpanNames(Arc<Mutex<Vec<&'static str>>>);

impl<S: Subscriber> Layer<S> for SpanNames {
    fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        let name = attributes.metadata().name();
        self.0.lock().expect("names").push(name);
    }
}

/// Returns the spans of a turn with so many messages, in order.
async fn spans_of_turn(level: LevelFilter, messages: usize) -> Vec<&'static str> {
    let names = Arc::new(Mutex::new(Vec::new()));
    let subscriber = tracing_subscriber::registry()
        .with(SpanNames(names.clone()))
        .with(level);
    let _guard = tracing::subscriber::set_default(subscriber);
    let says = vec![ScriptLine::Says("hello"); messages];
    let (threads, _) = threads(&journal(), &[says.as_slice()]);
    let (me, mut deliveries) = client();
    let thread = begin(&threads, ThreadId::mint(), me).await;
    execute(&thread, turn("t1", "hi")).await.expect("a turn");
    until(&mut deliveries, "turn/completed").await;
    threads.close().await;
    let names = names.lock().expect("names");
    names.clone()
}

#[tokio::test]
async fn no_span_is_created_for_a_delta() {
    let per_turn = ["thread", "thread", "turn", "model_call"];
    for (level, messages, expected) in [
        (LevelFilter::WARN, 100, &[][..]),
        (LevelFilter::INFO, 1, &per_turn[..]),
        (LevelFilter::INFO, 100, &per_turn[..]),
    ] {
        let names = spans_of_turn(level, messages).await;
        assert_eq!(names, expected, "{level} {messages}");
    }
    let names = spans_of_turn(LevelFilter::DEBUG, 1).await;
    assert!(names.contains(&"append"), "{names:?}");
}
