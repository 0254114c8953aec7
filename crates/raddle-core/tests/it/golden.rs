//! Golden journals: records of every release stay readable for ever.
//!
//! A file here is never changed. New variants and members get a new file, written by hand.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use raddle_core::ports::Summary;
use raddle_core::*;
use serde_json::Value;

use crate::context::assert_well_formed;
use crate::lists::may_change;
use crate::simulated::fold;

fn journals() -> Vec<(String, Vec<(Value, Record)>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut journals: Vec<_> = fs::read_dir(folder)
        .expect("golden journals")
        .flatten()
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let text = fs::read_to_string(entry.path()).expect("a golden journal");
            let records = text.lines().map(|line| {
                let value = serde_json::from_str(line).expect("JSON");
                let record = serde_json::from_str(line);
                (
                    value,
                    record.unwrap_or_else(|error| panic!("{name}: {error}: {line}")),
                )
            });
            let records = records.collect();
            (name, records)
        })
        .collect();
    journals.sort_by(|a, b| a.0.cmp(&b.0));
    journals
}

/// Reading drops no member that was written.
#[test]
fn every_member_is_kept() {
    for (name, records) in journals() {
        for (line, record) in records {
            let again = serde_json::to_value(&record).expect("JSON");
            assert_eq!(line, again, "{name}");
        }
    }
}

/// Journals fold to the state that they folded to when they were written, and produce their
/// notifications.
#[test]
fn journals_fold_and_produce_notifications() {
    for (name, records) in journals() {
        let records: Vec<Record> = records.into_iter().map(|(_, record)| record).collect();
        let mut thread = Thread::new();
        let mut notifications = 0;
        let mut context = Context::new();
        let mut summary = None;
        for record in &records {
            thread.apply(record);
            notifications += notifications_of(&thread, record).len();
            context.apply(record);
            let before = summary.clone();
            Summary::fold(&mut summary, record);
            assert_well_formed(&context.entries());
            assert_eq!(summary, Summary::of(&thread), "{name} at {}", record.seq);
            assert!(may_change(&before, record, &summary), "{record:?}");
        }
        let state = fs::read_to_string(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("tests/folded")
                .join(name.replace(".jsonl", ".txt")),
        );
        let actual = format!(
            "head {}\nepoch {}\nturns {}\ntotal tokens {}\nstatus {:?}\ntold {notifications}\nread by the model {}\n",
            thread.head(),
            thread.epoch().0,
            thread.turns(),
            thread.usage().total(),
            thread.status(),
            context.entries().len(),
        );
        assert_eq!(actual, state.unwrap_or_default(), "{name}");
        assert_eq!(fold(&records), thread);
    }
}

/// Every variant occurs in some journal at least once.
#[test]
fn every_variant_occurs() {
    let mut occurring = BTreeSet::new();
    for (_, records) in journals() {
        for (line, _) in records {
            names("body", &line["body"], &mut occurring);
        }
    }
    let mut missing = Vec::new();
    for (parent, variants) in VARIANTS {
        for variant in *variants {
            if !occurring.contains(&format!("{parent}{variant}")) {
                missing.push(format!("{parent}{variant}"));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

/// Collects the names of variants by the member that holds them.
fn names(member: &str, value: &Value, occurring: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            occurring.insert(format!("{member}={text}"));
        }
        Value::Object(members) => {
            for (name, value) in members {
                occurring.insert(format!("{member}={name}"));
                names(name, value, occurring);
            }
        }
        Value::Array(values) => {
            for value in values {
                names(member, value, occurring);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Variants of each enum, under the member that holds them. [`all_are_listed`] keeps this list
/// complete.
const VARIANTS: &[(&str, &[&str])] = &[
    (
        "event=",
        &[
            "threadStarted",
            "owned",
            "reserved",
            "released",
            "forked",
            "reverted",
            "settingsChanged",
            "renamed",
            "metadataChanged",
            "goalSet",
            "goalCleared",
            "inputQueued",
            "inputUnqueued",
            "queueReordered",
            "archived",
            "unarchived",
            "deleted",
            "briefed",
            "itemsInjected",
            "turnStarted",
            "inputAccepted",
            "modelCalled",
            "modelEnded",
            "modelUsed",
            "itemStarted",
            "itemSaved",
            "toolStarted",
            "itemCompleted",
            "requestOpened",
            "requestResolved",
            "planUpdated",
            "diffUpdated",
            "warned",
            "interruptAccepted",
            "turnEnded",
            "compacted",
            "remembered",
        ],
    ),
    (
        "body=",
        &[
            "event",
            "delta",
            "userMessage",
            "hookPrompt",
            "agentMessage",
            "toolOutput",
            "plan",
            "reasoning",
            "command",
            "patch",
            "mcp",
            "clientTool",
            "agents",
            "agentNote",
            "webSearch",
            "imageView",
            "sleep",
            "imageMade",
            "reviewEntered",
            "reviewLeft",
            "compaction",
            "tool",
        ],
    ),
    (
        "status=",
        &[
            "inProgress",
            "completed",
            "partial",
            "failed",
            "declined",
            "notRun",
            "interrupted",
            "unknown",
            "pending",
        ],
    ),
    ("part=", &["text", "summary", "content", "printed"]),
    ("gate=", &["open", "approval", "answer"]),
    (
        "ask=",
        &[
            "command",
            "patch",
            "tool",
            "permissions",
            "questions",
            "clientTool",
            "elicitation",
        ],
    ),
    ("resolution=", &["answered", "expired", "withdrawn"]),
    (
        "answer=",
        &[
            "accept",
            "acceptForSession",
            "acceptWithRule",
            "acceptHunks",
            "decline",
            "cancel",
            "permissions",
            "answers",
            "tool",
            "elicitation",
            "failed",
        ],
    ),
    (
        "kind=",
        &[
            "work",
            "review",
            "compaction",
            "shell",
            "add",
            "delete",
            "update",
        ],
    ),
    ("purpose=", &["answer", "compact"]),
    (
        "end=",
        &[
            "done",
            "broke",
            "rerouted",
            "overflowed",
            "failed",
            "cancelled",
            "ownerLost",
            "completed",
            "interrupted",
        ],
    ),
    (
        "kind=",
        &[
            "contextFull",
            "budgetSpent",
            "usageLimit",
            "rateLimit",
            "overloaded",
            "modelNotFound",
            "vendorFailed",
            "unauthorized",
            "badRequest",
            "policy",
            "connection",
            "stream",
            "untrusted",
            "unreadable",
            "cutShort",
            "tooManyAttempts",
            "sandbox",
            "recoveryLimit",
            "storageFull",
            "internal",
            "other",
        ],
    ),
    (
        "cause=",
        &[
            "client",
            "cancelled",
            "ownerLost",
            "shutdown",
            "forked",
            "budgetSpent",
            "deleted",
        ],
    ),
    ("scope=", &["turn", "thread"]),
    ("measure=", &["tokens", "usd", "seconds", "toolCalls"]),
    (
        "input=",
        &["text", "image", "audio", "audioFile", "skill", "mention"],
    ),
    ("image=", &["blob", "url", "path", "file"]),
    ("phase=", &["commentary", "partialAnswer", "finalAnswer"]),
    ("source=", &["agent", "user", "terminal", "typed", "editor"]),
    ("actions=", &["read", "list", "search", "other"]),
    ("action=", &["search", "open", "find", "other"]),
    (
        "approval=",
        &["untrusted", "onRequest", "never", "granular"],
    ),
    ("reviewer=", &["user", "agent"]),
    (
        "sandbox=",
        &["fullAccess", "readOnly", "workspaceWrite", "external"],
    ),
    ("recovery=", &["continue", "interrupt"]),
    (
        "status=",
        &[
            "active",
            "paused",
            "blocked",
            "usageLimited",
            "budgetLimited",
            "complete",
        ],
    ),
    (
        "topic=",
        &[
            "instructions",
            "environment",
            "skills",
            "skillTexts",
            "withheldSkills",
        ],
    ),
    (
        "items=",
        &["user", "developer", "note", "assistant", "call", "output"],
    ),
];

/// Fails to compile when an enum gets a variant that the list above may lack.
#[test]
fn all_are_listed() {
    fn event(it: &Event) -> &'static str {
        match it {
            Event::ThreadStarted(_) => "threadStarted",
            Event::Owned(_) => "owned",
            Event::Reserved(_) => "reserved",
            Event::Released {} => "released",
            Event::Forked(_) => "forked",
            Event::Reverted(_) => "reverted",
            Event::SettingsChanged(_) => "settingsChanged",
            Event::Renamed(_) => "renamed",
            Event::MetadataChanged(_) => "metadataChanged",
            Event::GoalSet(_) => "goalSet",
            Event::GoalCleared { .. } => "goalCleared",
            Event::InputQueued(_) => "inputQueued",
            Event::InputUnqueued(_) => "inputUnqueued",
            Event::QueueReordered(_) => "queueReordered",
            Event::Archived { .. } => "archived",
            Event::Unarchived { .. } => "unarchived",
            Event::Deleted { .. } => "deleted",
            Event::Briefed(_) => "briefed",
            Event::ItemsInjected(_) => "itemsInjected",
            Event::TurnStarted(_) => "turnStarted",
            Event::InputAccepted(_) => "inputAccepted",
            Event::ModelCalled(_) => "modelCalled",
            Event::ModelEnded(_) => "modelEnded",
            Event::ModelUsed(_) => "modelUsed",
            Event::ItemStarted(_) => "itemStarted",
            Event::ItemSaved(_) => "itemSaved",
            Event::ToolStarted(_) => "toolStarted",
            Event::ItemCompleted(_) => "itemCompleted",
            Event::RequestOpened(_) => "requestOpened",
            Event::RequestResolved(_) => "requestResolved",
            Event::PlanUpdated(_) => "planUpdated",
            Event::DiffUpdated(_) => "diffUpdated",
            Event::Warned(_) => "warned",
            Event::InterruptAccepted(_) => "interruptAccepted",
            Event::TurnEnded(_) => "turnEnded",
            Event::Compacted(_) => "compacted",
            Event::Remembered(_) => "remembered",
        }
    }
    fn body(it: &ItemBody) -> &'static str {
        match it {
            ItemBody::UserMessage(_) => "userMessage",
            ItemBody::HookPrompt(_) => "hookPrompt",
            ItemBody::AgentMessage(_) => "agentMessage",
            ItemBody::ToolOutput(_) => "toolOutput",
            ItemBody::Plan(_) => "plan",
            ItemBody::Reasoning(_) => "reasoning",
            ItemBody::Command(_) => "command",
            ItemBody::Patch(_) => "patch",
            ItemBody::Mcp(_) => "mcp",
            ItemBody::ClientTool(_) => "clientTool",
            ItemBody::Agents(_) => "agents",
            ItemBody::AgentNote(_) => "agentNote",
            ItemBody::WebSearch(_) => "webSearch",
            ItemBody::ImageView(_) => "imageView",
            ItemBody::Sleep(_) => "sleep",
            ItemBody::ImageMade(_) => "imageMade",
            ItemBody::ReviewEntered(_) => "reviewEntered",
            ItemBody::ReviewLeft(_) => "reviewLeft",
            ItemBody::Compaction {} => "compaction",
            ItemBody::Tool(_) => "tool",
        }
    }
    let listed = |parent: &str, name: &str| {
        VARIANTS
            .iter()
            .any(|(it, variants)| *it == parent && variants.contains(&name))
    };
    for (_, records) in journals() {
        for (_, record) in records {
            let RecordBody::Event(it) = &record.body else {
                continue;
            };
            assert!(listed("event=", event(it)));
            if let Event::ItemCompleted(it) = &**it {
                assert!(listed("body=", body(&it.item.body)));
            }
        }
    }
}
