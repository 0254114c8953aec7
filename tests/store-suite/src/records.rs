//! Records as a writer would append them.
#![expect(
    missing_docs,
    reason = "a function is named after the record that it returns"
)]

use raddle_core::ports::{AppendError, Journal, ListScope};
use raddle_core::{
    AgentMessage, Ask, Blob, Class, Delta, Epoch, Event, Forked, IdempotencyKey, Image, Input,
    InputAccepted, Item, ItemBody, ItemCompleted, ItemPart, ItemSaved, ItemStarted, ItemStatus,
    Owned, PartText, Record, RecordBody, Remembered, Renamed, RequestNumber, RequestOpened,
    RequestResolved, Resolution, Reverted, Seq, Settings, Span, ThreadId, ThreadSource,
    ThreadStarted, Timestamp, TurnEnd, TurnEnded, TurnId, TurnKind, TurnStarted, UserMessage,
};

/// A thread and the number of its newest record.
#[derive(Clone, Debug)]
pub struct ThreadScript {
    pub thread: ThreadId,
    pub head: Seq,
    pub now: i64,
}

impl Default for ThreadScript {
    fn default() -> Self {
        Self::new()
    }
}

impl ThreadScript {
    pub fn new() -> Self {
        Self {
            thread: ThreadId::mint(),
            head: Seq::ZERO,
            now: 1_000,
        }
    }

    /// Gives bodies their numbers and times.
    pub fn records(&mut self, bodies: Vec<RecordBody>) -> Vec<Record> {
        let numbered = bodies.into_iter().map(|body| {
            self.head = self.head.next();
            self.now += 1;
            Record {
                seq: self.head,
                at: Timestamp(self.now),
                body,
            }
        });
        numbered.collect()
    }

    /// Appends bodies as one append. Returns the records.
    pub async fn append(&mut self, journal: &impl Journal, bodies: Vec<RecordBody>) -> Vec<Record> {
        let after = self.head;
        let records = self.records(bodies);
        let class = class_of(&records);
        loop {
            let head = journal.append(self.thread, after, &records, class).await;
            // With many writers, the last one may have to retry.
            if !matches!(head, Err(AppendError::Unavailable(_))) {
                assert_eq!(head, Ok(self.head));
                return records;
            }
        }
    }

    pub async fn start(&mut self, journal: &impl Journal, cwd: &str) -> Vec<Record> {
        let bodies = vec![started(self.thread, cwd), owned()];
        self.append(journal, bodies).await
    }

    /// Starts the thread for a principal of a tenant.
    pub async fn start_by(&mut self, journal: &impl Journal, cwd: &str, by: &ListScope) {
        let bodies = vec![started_by(self.thread, cwd, by), owned()];
        self.append(journal, bodies).await;
    }

    /// Forks this thread at a number.
    pub async fn fork(&self, journal: &impl Journal, at: Seq) -> Self {
        let to = ThreadId::mint();
        let head = journal.fork(self.thread, at, to).await.expect("a fork");
        Self {
            thread: to,
            head,
            now: self.now,
        }
    }

    /// Appends a whole turn with one message each way.
    pub async fn turn(&mut self, journal: &impl Journal, turn: &str, text: &str) -> Vec<Record> {
        let mut records = self.append(journal, begin_turn(turn, text)).await;
        let item = format!("{turn}-answer");
        let answer = vec![
            item_started(turn, &item),
            delta(&item, 0, "so "),
            delta(&item, 3, "be it"),
        ];
        self.append(journal, answer).await;
        let end = vec![completed(turn, &item, "so be it"), turn_ended(turn)];
        records.extend(self.append(journal, end).await);
        records
    }
}

pub fn class_of(records: &[Record]) -> Class {
    let classes = records.iter().map(|record| record.body.class());
    classes.max().unwrap_or(Class::Process)
}

pub fn started(thread: ThreadId, cwd: &str) -> RecordBody {
    started_by(thread, cwd, &ListScope::default())
}

/// Returns the first record of a thread that a principal of a tenant starts.
pub fn started_by(thread: ThreadId, cwd: &str, by: &ListScope) -> RecordBody {
    Event::ThreadStarted(ThreadStarted {
        thread,
        tenant: by.tenant.clone(),
        principal: by.principal.clone(),
        source: ThreadSource::Cli,
        originator: None,
        label: None,
        version: "0.1.0".to_owned(),
        ephemeral: false,
        paginated: false,
        git: None,
        settings: Settings {
            cwd: cwd.to_owned(),
            ..Settings::default()
        },
    })
    .into()
}

/// Returns the first record of the node `one`.
pub fn owned() -> RecordBody {
    owned_by("one", 1)
}

pub fn owned_by(node: &str, epoch: u64) -> RecordBody {
    Event::Owned(Owned {
        epoch: Epoch(epoch),
        node: node.to_owned(),
        found: Seq::ZERO,
        reserved: Seq(10_000),
        level: raddle_core::LEVEL,
        version: String::new(),
    })
    .into()
}

pub fn released() -> RecordBody {
    Event::Released {}.into()
}

pub fn begin_turn(turn: &str, text: &str) -> Vec<RecordBody> {
    let item = item(
        &format!("{turn}-input"),
        ItemBody::UserMessage(UserMessage {
            input: vec![Input::text(text)],
            client_id: None,
        }),
        ItemStatus::Completed,
    );
    let turn = TurnId::from(turn);
    vec![
        Event::TurnStarted(TurnStarted {
            turn: turn.clone(),
            kind: TurnKind::Work,
            principal: None,
            root: None,
            output_schema: None,
            reviewed: Vec::new(),
        })
        .into(),
        Event::InputAccepted(InputAccepted {
            turn,
            item,
            principal: None,
        })
        .into(),
    ]
}

pub fn turn_ended(turn: &str) -> RecordBody {
    let end = TurnEnd::Completed {};
    let turn = turn.into();
    Event::TurnEnded(TurnEnded { turn, end }).into()
}

pub fn item(id: &str, body: ItemBody, status: ItemStatus) -> Item {
    Item {
        id: id.into(),
        status,
        body,
        call: None,
        output: None,
        sealed: None,
        started_at: Timestamp(1),
        completed_at: None,
    }
}

pub fn message(text: &str) -> ItemBody {
    ItemBody::AgentMessage(AgentMessage {
        text: text.to_owned(),
        phase: None,
    })
}

pub fn item_started(turn: &str, id: &str) -> RecordBody {
    Event::ItemStarted(ItemStarted {
        turn: turn.into(),
        item: item(id, message(""), ItemStatus::InProgress),
        gate: None,
        ruling: None,
    })
    .into()
}

pub fn delta(item: &str, offset: u64, text: &str) -> RecordBody {
    Delta {
        item: item.into(),
        part: ItemPart::Text,
        offset,
        text: text.to_owned(),
    }
    .into()
}

pub fn saved(id: &str, text: &str) -> RecordBody {
    Event::ItemSaved(ItemSaved {
        item: id.into(),
        texts: vec![PartText {
            part: ItemPart::Text,
            text: text.to_owned(),
        }],
    })
    .into()
}

pub fn completed(turn: &str, id: &str, text: &str) -> RecordBody {
    Event::ItemCompleted(ItemCompleted {
        turn: turn.into(),
        item: item(id, message(text), ItemStatus::Completed),
    })
    .into()
}

pub fn request_opened(turn: &str, item: &str, request: u64) -> RecordBody {
    Event::RequestOpened(RequestOpened {
        request: RequestNumber(request),
        turn: turn.into(),
        item: item.into(),
        ask: Ask::ClientTool {},
        expires_at: None,
        digest: None,
        files: Vec::new(),
        approve_on_timeout: false,
    })
    .into()
}

pub fn request_resolved(request: u64) -> RecordBody {
    Event::RequestResolved(RequestResolved {
        request: RequestNumber(request),
        resolution: Resolution::Withdrawn {},
        grant: None,
    })
    .into()
}

pub fn renamed(name: &str) -> RecordBody {
    let name = Some(name.to_owned());
    Event::Renamed(Renamed {
        name,
        principal: None,
    })
    .into()
}

pub fn deleted() -> RecordBody {
    Event::Deleted { principal: None }.into()
}

pub fn remembered() -> RecordBody {
    Event::Remembered(Remembered {
        key: IdempotencyKey {
            principal: "user:a".to_owned(),
            method: "thread/delete".to_owned(),
            id: "k".to_owned(),
        },
        asked: "hash".to_owned(),
        outcome: serde_json::Value::Null,
        answer: None,
    })
    .into()
}

pub fn reverted(turn: &str, at: Seq, turns: u64) -> RecordBody {
    Event::Reverted(Reverted {
        turn: turn.into(),
        at,
        lineage: vec![Span {
            from: Seq::ZERO,
            until: Some(at),
        }],
        turns,
        context_tokens: 0,
        principal: None,
    })
    .into()
}

/// Returns the first record of a fork.
pub fn forked(thread: ThreadId, from: ThreadId, at: Seq, turns: u64) -> RecordBody {
    Event::Forked(Forked {
        thread,
        from,
        at,
        principal: None,
        lineage: vec![Span {
            from: Seq::ZERO,
            until: None,
        }],
        turns,
        settings: Settings {
            cwd: "/fork".to_owned(),
            ..Settings::default()
        },
        ephemeral: false,
    })
    .into()
}

/// Returns a record that refers to a blob.
pub fn record_with_blob(blob: &Blob) -> RecordBody {
    let image = Image::Blob(blob.clone());
    let input = Input::Image {
        image,
        detail: None,
        path: None,
    };
    let message = UserMessage {
        input: vec![input],
        client_id: None,
    };
    let accepted = InputAccepted {
        turn: "t".into(),
        item: item("i", ItemBody::UserMessage(message), ItemStatus::Completed),
        principal: None,
    };
    Event::InputAccepted(accepted).into()
}
