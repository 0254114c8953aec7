//! A live thread, from a command to its notifications.

mod blobs;
mod catch_up;
mod client_tools;
mod deleting;
mod injected;
mod journal_outage;
mod memory_log;
mod metering;
mod owners;
mod peek;
mod progress;
mod script;
mod subscribe;
mod take_over;
mod tool_gate;
mod turn_log;
mod unload;
mod waiting;
mod webhook;

use std::sync::Arc;

use raddle_agent::{
    AgentError, Delivery, Handle, Options, SoleNode, SubscribeResult, Subscriber, Threads,
};
use raddle_core::ports::{Journal, ReadError, Rulebook, Tools, Webhook};
use raddle_core::{
    Command, CommandOutcome, CursorStatus, Event, Input, InputMessage, Interrupt, RecordBody,
    Recovery, Refusal, Rename, Settings, StartTurn, Status, ThreadId, ThreadSource, ThreadStarted,
    Timestamp, TurnKind,
};
use raddle_store::MemoryJournal;
use tokio::sync::{mpsc, oneshot};

use script::{ScriptLine, ScriptedAnswers};

/// A subscriber that records what it receives.
struct RecordingSubscriber {
    deliveries_tx: mpsc::UnboundedSender<String>,
}

impl Subscriber for RecordingSubscriber {
    fn deliver(&self, delivery: &Delivery) -> bool {
        let line = match delivery {
            Delivery::Record { notification, seq } => {
                let number = if seq.is_some() { " #" } else { "" };
                format!("{}{number}", notification.method())
            }
            Delivery::Notice(notice) => notice.method().to_owned(),
            Delivery::Request { method, .. } => format!("ask {method}"),
        };
        self.deliveries_tx.send(line).is_ok()
    }

    fn is_connected(&self) -> bool {
        !self.deliveries_tx.is_closed()
    }
}

fn rename(name: Option<&str>) -> Command {
    Command::Rename(Rename {
        name: name.map(str::to_owned),
        principal: None,
    })
}

fn interrupt() -> Command {
    Command::Interrupt(Interrupt {
        turn: None,
        cause: raddle_core::Cause::Client { principal: None },
    })
}

fn client() -> (Arc<dyn Subscriber>, mpsc::UnboundedReceiver<String>) {
    let (deliveries_tx, deliveries) = mpsc::unbounded_channel();
    (Arc::new(RecordingSubscriber { deliveries_tx }), deliveries)
}

async fn until(deliveries: &mut mpsc::UnboundedReceiver<String>, last: &str) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(line) = deliveries.recv().await {
        let is_last = line.starts_with(last);
        lines.push(line);
        if is_last {
            break;
        }
    }
    lines
}

fn threads(
    journal: &Arc<dyn Journal>,
    script: &[&[ScriptLine]],
) -> (Threads, Arc<ScriptedAnswers>) {
    let rules = Arc::new(raddle_agent::FixedRules::default());
    threads_with(journal, script, Arc::new(raddle_agent::NoTools), rules)
}

/// Creates threads with tools and rules.
fn threads_with(
    journal: &Arc<dyn Journal>,
    script: &[&[ScriptLine]],
    tools: Arc<dyn Tools>,
    rules: Arc<dyn Rulebook>,
) -> (Threads, Arc<ScriptedAnswers>) {
    threads_with_webhook(
        journal,
        script,
        tools,
        rules,
        Arc::new(raddle_agent::NoWebhook),
    )
}

/// Creates threads with a webhook as well.
fn threads_with_webhook(
    journal: &Arc<dyn Journal>,
    script: &[&[ScriptLine]],
    tools: Arc<dyn Tools>,
    rules: Arc<dyn Rulebook>,
    webhook: Arc<dyn Webhook>,
) -> (Threads, Arc<ScriptedAnswers>) {
    let script = Arc::new(ScriptedAnswers::new(script));
    let options = Options {
        tools,
        rules,
        webhook,
        ..options(journal, script.clone())
    };
    (Threads::new(options), script)
}

/// Options without tools.
fn options(journal: &Arc<dyn Journal>, script: Arc<ScriptedAnswers>) -> Options {
    Options {
        journal: journal.clone(),
        pages: Arc::new(MemoryJournal::new()),
        blobs: Arc::new(MemoryJournal::new()),
        memory: Arc::new(MemoryJournal::new()),
        memory_pages: Arc::new(MemoryJournal::new()),
        memory_blobs: Arc::new(MemoryJournal::new()),
        model: script,
        tools: Arc::new(raddle_agent::NoTools),
        rules: Arc::new(raddle_agent::FixedRules::default()),
        webhook: Arc::new(raddle_agent::NoWebhook),
        hooks: Arc::new(raddle_core::ports::NoHooks),
        skills: Arc::new(raddle_agent::NoSkills),
        plugins: Arc::new(raddle_core::ports::NoPlugins),
        clock: || Timestamp(1_000_000),
        node: "here".to_owned(),
        liveness: Arc::new(SoleNode),
        recovery: Recovery::Continue,
    }
}

fn journal() -> Arc<dyn Journal> {
    Arc::new(MemoryJournal::new())
}

fn started(id: ThreadId) -> ThreadStarted {
    ThreadStarted {
        thread: id,
        tenant: None,
        principal: None,
        source: ThreadSource::Editor,
        originator: None,
        label: None,
        version: "1".to_owned(),
        ephemeral: false,
        paginated: false,
        git: None,
        settings: Settings::default(),
    }
}

/// Starts a thread and waits for the reply.
async fn begin(threads: &Threads, id: ThreadId, me: Arc<dyn Subscriber>) -> Handle {
    let (reply, answer) = oneshot::channel();
    let handle = threads.start(started(id), me, |subscribed| drop(reply.send(subscribed)));
    answer.await.expect("an answer").expect("a thread");
    handle
}

async fn execute(thread: &Handle, command: Command) -> Result<CommandOutcome, AgentError> {
    let (reply, answer) = oneshot::channel();
    let reply = |outcome| drop(reply.send(outcome));
    thread.send_command(command, reply).await;
    answer.await.expect("an answer")
}

async fn subscribe(thread: &Handle, me: Arc<dyn Subscriber>) -> SubscribeResult {
    let (reply, answer) = oneshot::channel();
    let reply = |subscribed| drop(reply.send(subscribed));
    thread.subscribe(None, me, reply).await;
    answer.await.expect("an answer").expect("subscribed")
}

fn turn(id: &str, text: &str) -> Command {
    Command::StartTurn(Box::new(StartTurn {
        turn: id.into(),
        kind: TurnKind::Work,
        message: Some(InputMessage {
            item: format!("{id}-m").as_str().into(),
            input: vec![Input::text(text)],
            client_id: None,
            hook_prompt: None,
        }),
        change: Box::default(),
        briefs: Vec::new(),
        principal: None,
        root: None,
        output_schema: None,
    }))
}

#[tokio::test]
async fn a_subscriber_receives_a_turn_from_start_to_end() {
    let journal = journal();
    let (threads, script) = threads(&journal, &[&[ScriptLine::Says("hello")]]);
    let (me, mut deliveries) = client();
    let thread = begin(&threads, ThreadId::mint(), me).await;
    assert_eq!(deliveries.recv().await.as_deref(), Some("thread/started #"));
    let outcome = execute(&thread, turn("t1", "hi")).await.expect("a turn");
    assert_eq!(outcome, CommandOutcome::Started { turn: "t1".into() });
    assert_eq!(
        until(&mut deliveries, "turn/completed").await,
        [
            "thread/status/changed",
            "turn/started #",
            "item/started",
            "item/completed #",
            "item/started #",
            "item/agentMessage/delta #",
            "item/completed #",
            "thread/tokenUsage/updated #",
            "thread/status/changed",
            "turn/completed #",
        ]
    );
    assert_eq!(script.prompts(), ["user hi"]);
}

/// Starts a thread in a folder.
async fn begin_in(threads: &Threads, cwd: &std::path::Path, me: Arc<dyn Subscriber>) -> Handle {
    let (reply, answer) = oneshot::channel();
    let mut start = started(ThreadId::mint());
    start.settings.cwd = cwd.display().to_string();
    let handle = threads.start(start, me, |subscribed| drop(reply.send(subscribed)));
    answer.await.expect("an answer").expect("a thread");
    handle
}

#[tokio::test]
async fn prompts_of_successive_calls_share_their_prefix() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("AGENTS.md");
    std::fs::write(&file, "use tabs").expect("a file");
    let says: &[ScriptLine] = &[ScriptLine::Says("ok")];
    let (threads, script) = threads(&journal(), &[says, says, says, says]);
    let (me, mut deliveries) = client();
    let thread = begin_in(&threads, folder.path(), me).await;
    for (id, rules) in [
        ("t1", None),
        ("t2", None),
        ("t3", Some("use spaces")),
        ("t4", None),
    ] {
        if let Some(rules) = rules {
            std::fs::write(&file, rules).expect("a file");
        }
        execute(&thread, turn(id, id)).await.expect("a turn");
        until(&mut deliveries, "turn/completed").await;
    }
    let prompts = script.whole();
    for pair in prompts.windows(2) {
        assert!(pair[1].starts_with(&pair[0]), "{pair:#?}");
    }
    let notes: Vec<usize> = script.notes().iter().map(Vec::len).collect();
    assert_eq!(notes, [2, 2, 3, 3]);
    let last_notes = script.notes().pop().expect("notes");
    assert!(
        last_notes[0].contains("use tabs") && last_notes[2].contains("use spaces"),
        "{last_notes:?}"
    );
    assert!(
        last_notes[1].contains(&format!("folder: {}", folder.path().display())),
        "{last_notes:?}"
    );
}

#[tokio::test]
async fn another_process_continues_an_unloaded_thread() {
    let journal = journal();
    let id = ThreadId::mint();
    let (first, _) = threads(&journal, &[&[ScriptLine::Says("hello")]]);
    let (me, mut deliveries) = client();
    let thread = begin(&first, id, me).await;
    execute(&thread, turn("t1", "hi")).await.expect("a turn");
    until(&mut deliveries, "turn/completed").await;
    first.close().await;

    let (second, script) = threads(&journal, &[&[ScriptLine::Says("again")]]);
    let thread = second.get(id).await.expect("the thread");
    let (me, mut deliveries) = client();
    let subscribed = subscribe(&thread, me).await;
    assert_eq!(subscribed.cursor, CursorStatus::Good);
    assert_eq!(subscribed.thread.turns(), 1);
    execute(&thread, turn("t2", "more")).await.expect("a turn");
    until(&mut deliveries, "turn/completed").await;
    assert_eq!(script.prompts(), ["user hi · assistant hello · user more"]);
}

#[tokio::test]
async fn a_former_owner_stops_as_soon_as_it_writes() {
    let journal = journal();
    let id = ThreadId::mint();
    let (first, _) = threads(&journal, &[]);
    let old = begin(&first, id, client().0).await;
    execute(&old, rename(Some("a"))).await.expect("stored");
    let (second, _) = threads(&journal, &[]);
    let new = second.get(id).await.expect("the thread");
    execute(&new, rename(Some("b"))).await.expect("stored");
    let result = execute(&old, rename(Some("c"))).await;
    assert_eq!(result, Err(AgentError::Refused(Refusal::OwnedElsewhere)));
    let name = new.inspect(|thread| thread.name().map(str::to_owned)).await;
    assert_eq!(name, Ok(Some("b".to_owned())));
}

#[tokio::test]
async fn an_interrupt_ends_the_call_of_the_model() {
    let journal = journal();
    let (threads, script) = threads(&journal, &[&[ScriptLine::Begins("hel"), ScriptLine::Hangs]]);
    let (me, mut deliveries) = client();
    let thread = begin(&threads, ThreadId::mint(), me).await;
    assert_eq!(deliveries.recv().await.as_deref(), Some("thread/started #"));
    execute(&thread, turn("t1", "hi")).await.expect("a turn");
    until(&mut deliveries, "item/agentMessage/delta").await;
    assert_eq!(
        execute(&thread, interrupt()).await,
        Ok(CommandOutcome::Done {})
    );
    let last = until(&mut deliveries, "turn/completed").await;
    assert_eq!(last[0], "item/completed #");
    script.dropped().await;
    let status = thread.inspect(raddle_core::Thread::status).await;
    assert_eq!(status, Ok(Status::Idle));
}

#[tokio::test]
async fn all_clients_receive_a_rename_and_only_subscribers_its_sequence_number() {
    let journal = journal();
    let (threads, _) = threads(&journal, &[]);
    let (me, mut mine) = client();
    let (other, mut others) = client();
    threads.subscribe_global(&me);
    threads.subscribe_global(&other);
    let thread = begin(&threads, ThreadId::mint(), me.clone()).await;
    execute(&thread, rename(Some("a"))).await.expect("stored");
    assert_eq!(
        until(&mut others, "thread/name")
            .await
            .last()
            .map(String::as_str),
        Some("thread/name/updated")
    );
    assert_eq!(
        until(&mut mine, "thread/name")
            .await
            .last()
            .map(String::as_str),
        Some("thread/name/updated #")
    );
    assert_eq!(thread.unsubscribe(me.clone()).await, Ok(true));
    assert_eq!(thread.unsubscribe(me.clone()).await, Ok(false));
    execute(&thread, rename(None)).await.expect("stored");
    assert_eq!(
        until(&mut mine, "thread/name").await,
        ["thread/name/updated"]
    );
}

#[tokio::test]
async fn a_missing_thread_is_not_opened() {
    let (threads, _) = threads(&journal(), &[]);
    let missing = threads.get(ThreadId::mint()).await;
    assert_eq!(missing.err(), Some(AgentError::Read(ReadError::NotFound)));
}

#[tokio::test]
async fn a_deleted_thread_is_removed() {
    let journal = journal();
    let (threads, _) = threads(&journal, &[]);
    let id = ThreadId::mint();
    let thread = begin(&threads, id, client().0).await;
    execute(&thread, Command::Delete(raddle_core::Delete::default()))
        .await
        .expect("stored");
    threads.close().await;
    assert_eq!(journal.head(id).await, Ok(raddle_core::Seq::ZERO));
}

#[tokio::test]
async fn a_sealed_value_is_stored_unless_it_is_too_deep() {
    for (depth, is_stored) in [(1, true), (64, true), (65, false), (120, false)] {
        let folder = tempfile::tempdir().expect("a folder");
        let options = raddle_store::Options {
            folder: folder.path().to_owned(),
        };
        let journal = raddle_store::LocalJournal::open(&options).expect("a journal");
        let journal: Arc<dyn Journal> = Arc::new(journal);
        let (threads, _) = threads(&journal, &[&[ScriptLine::Seals(depth)]]);
        let (me, mut deliveries) = client();
        let id = ThreadId::mint();
        let thread = begin(&threads, id, me).await;
        execute(&thread, turn("t1", "hi")).await.expect("a turn");
        until(&mut deliveries, "turn/completed").await;
        let records = journal.read(id, raddle_core::Seq::ZERO, usize::MAX).await;
        let records = records.expect("records that can be read");
        let sealed = records.iter().any(|record| match &record.body {
            RecordBody::Event(event) => {
                matches!(&**event, Event::ItemCompleted(it) if it.item.sealed.is_some())
            }
            RecordBody::Delta(_) => false,
        });
        assert_eq!(sealed, is_stored, "{depth} levels");
    }
}
