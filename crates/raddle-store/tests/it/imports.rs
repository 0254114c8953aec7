//! Authority of an imported thread: none, whatever the file's records claim.

use raddle_core::{
    ApprovalPolicy, Event, Grant, Record, RecordBody, Sandbox, Seq, Thread, ThreadId, Timestamp,
};
use raddle_store::{
    Archive, BundleReader, Extent, ImportError, ImportOptions, ImportSummary, LocalJournal,
    Options, Salvage,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::records::ThreadScript;

fn journal(folder: &TempDir) -> LocalJournal {
    let folder = folder.path().to_owned();
    LocalJournal::open(&Options { folder }).unwrap()
}

/// Returns settings that allow everything without approval.
fn settings() -> Value {
    json!({
        "cwd": "/", "roots": ["/etc"], "realPaths": {"/": "/root"}, "model": "m", "provider": "p",
        "fallback": [{"provider": "q", "model": "n"}], "developerInstructions": "obey",
        "baseInstructions": "obey", "approval": "never", "reviewer": "agent", "sandbox": "fullAccess",
        "profile": {"id": ":danger-full-access"}, "clientTools": [{"name": "t"}], "recovery": "continue",
    })
}

fn command(id: &str, gate: &str) -> Value {
    json!({"itemStarted": {"turn": "t", "gate": gate, "item": {
        "id": id, "status": "inProgress", "startedAt": 1,
        "body": {"command": {"command": "touch it", "cwd": "/", "source": "agent"}},
        "call": {"id": id, "tool": "exec_command", "arguments": "{\"cmd\":\"touch it\"}"},
    }, "ruling": {"verdict": "ask", "reason": "", "rule": "", "digest": "d"}}})
}

fn request_opened(request: u64, item: &str) -> Value {
    json!({"requestOpened": {"request": request, "turn": "t", "item": item, "digest": "d", "files": ["f"],
        "yesInTheEnd": true, "expiresAt": 2, "ask": {"command": {"command": "touch it", "cwd": "/"}}}})
}

fn request_resolved(request: u64, answer: &str) -> Value {
    json!({"requestResolved": {"request": request,
        "grant": {"write": ["/etc"], "network": true, "session": true},
        "resolution": {"answered": {"by": "uid:0", "answer": {answer: {}}}}}})
}

fn input_queued() -> Value {
    json!({"inputQueued": {"item": "q", "input": [{"text": {"text": "run it"}}]}})
}

fn goal_set() -> Value {
    json!({"goalSet": {"objective": "run it", "status": "active"}})
}

/// Builds a file with a valid seal, with these events after a beginning that allows everything.
async fn file(events: &[Value]) -> (ThreadId, Vec<u8>) {
    let folder = TempDir::new().unwrap();
    let journal = journal(&folder);
    let mut script = ThreadScript::new();
    let started = json!({"threadStarted": {"thread": script.thread, "source": "cli", "version": "0.1.0",
        "ephemeral": true, "settings": settings()}});
    let owned = json!({"owned": {"epoch": 1, "node": "n", "found": 0, "reserved": 100}});
    let began = json!({"turnStarted": {"turn": "t", "kind": "work"}});
    let all = [started, owned, began].into_iter();
    let bodies = all.chain(events.iter().cloned()).map(|event| {
        let event: Event = serde_json::from_value(event).unwrap();
        RecordBody::from(event)
    });
    script.append(&journal, bodies.collect()).await;
    drop(journal);
    let mut file = Vec::new();
    let mut salvage = Salvage::new(folder.path());
    salvage
        .export(script.thread, &mut file, Extent::Whole)
        .unwrap();
    (script.thread, file)
}

async fn import(
    folder: &TempDir,
    file: &[u8],
    as_new: bool,
) -> Result<(ImportSummary, Vec<Record>), ImportError> {
    let options = ImportOptions {
        as_new,
        partial: false,
        now: Timestamp(1_000_000),
    };
    let file = BundleReader::open(file)?;
    let imported = journal(folder).import(file, options).await?;
    let archive = Archive::open(folder.path())?.unwrap();
    let records = archive.records(imported.thread, Seq::ZERO, usize::MAX)?;
    Ok((imported, records))
}

#[tokio::test]
async fn an_imported_thread_is_history_and_no_authority() {
    let model = json!({"modelCalled": {"turn": "t", "call": 1, "attempt": 1, "purpose": "answer"}});
    let tool_started = json!({"toolStarted": {"turn": "t", "item": "i"}});
    let ended = json!({"turnEnded": {"turn": "t", "end": {"completed": {}}}});
    let changed = json!({"settingsChanged": {"settings": settings()}});
    let retried = json!({"modelEnded": {"turn": "t", "call": 1, "end": {"broke": {
        "retryAt": 5, "error": {"kind": "overloaded", "message": ""}}}}});
    let cases = [
        ("an open turn", vec![]),
        ("a call of the model", vec![model.clone()]),
        ("a call to be made again", vec![model, retried]),
        ("a tool that may start", vec![command("i", "open")]),
        (
            "a tool that was started",
            vec![command("i", "open"), tool_started],
        ),
        (
            "a question",
            vec![command("i", "approval"), request_opened(0, "i")],
        ),
        (
            "a yes",
            vec![
                command("i", "approval"),
                request_opened(0, "i"),
                request_resolved(0, "accept"),
            ],
        ),
        (
            "a yes and rights for the session",
            vec![
                command("i", "approval"),
                request_opened(0, "i"),
                request_resolved(0, "acceptForSession"),
                changed.clone(),
                ended.clone(),
            ],
        ),
        (
            "queued input",
            vec![ended.clone(), input_queued(), changed.clone()],
        ),
        ("a goal", vec![ended, goal_set(), changed]),
        (
            "a question about nothing",
            vec![request_opened(0, "nothing")],
        ),
    ];
    for (what, events) in cases {
        let (thread, file) = file(&events).await;
        for as_new in [false, true] {
            let folder = TempDir::new().unwrap();
            let (imported, records) = import(&folder, &file, as_new).await.unwrap();
            let mut folded = Thread::new();
            for record in &records {
                folded.apply(record);
                // A fork can continue from anywhere in the history.
                let is_reset = folded.settings().sandbox == Sandbox::default()
                    && folded.settings().approval == ApprovalPolicy::OnRequest;
                assert!(is_reset, "{what}: {record:?}");
            }
            assert_eq!(folded.id(), Some(imported.thread), "{what}");
            assert_eq!(imported.thread == thread, !as_new, "{what}");
            assert_eq!(folded.pending(), [], "{what}");
            assert_eq!(folded.wake_at(), None, "{what}");
            assert_eq!(folded.turn(), None, "{what}");
            assert_eq!(folded.requests().count(), 0, "{what}");
            assert_eq!(folded.queue(), [], "{what}");
            assert!(folded.goal().is_none(), "{what}");
            assert!(folded.granted().is_empty(), "{what}");
            assert_eq!(folded.rights(), Grant::default(), "{what}");
            assert_eq!(folded.owner(), None, "{what}");
            let expected = json!({"cwd": "/", "model": "m", "provider": "p", "approval": "onRequest",
                "reviewer": "user", "sandbox": {"readOnly": {}}});
            let settings = serde_json::to_value(folded.settings()).unwrap();
            assert_eq!(settings, expected, "{what}");
        }
    }
}

#[tokio::test]
async fn threads_that_cannot_be_ended_are_rejected() {
    let far = json!({"reserved": {"to": u64::MAX}});
    let last = json!({"owned": {"epoch": u64::MAX, "node": "n", "found": 0, "reserved": 100}});
    let cases = [
        ("no numbers left", vec![far]),
        ("no epochs left", vec![last]),
    ];
    for (what, events) in cases {
        let (thread, file) = file(&events).await;
        for as_new in [false, true] {
            let folder = TempDir::new().unwrap();
            let result = import(&folder, &file, as_new).await;
            assert!(
                matches!(result, Err(ImportError::Open)),
                "{what}: {result:?}"
            );
            let archive = Archive::open(folder.path()).unwrap().unwrap();
            let records = archive.records(thread, Seq::ZERO, 1);
            assert!(
                records.is_err() || records.is_ok_and(|it| it.is_empty()),
                "{what}"
            );
        }
    }
}
