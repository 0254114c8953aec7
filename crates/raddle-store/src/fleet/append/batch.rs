//! Rows that an append adds, and the state of the thread after it.

use std::collections::BTreeMap;
use std::sync::Arc;

use raddle_core::ports::{AppendError, Summary};
use raddle_core::{Event, ItemId, Record, RecordBody, Seq, ThreadId};

use crate::fleet::SharedJournal;
use crate::fleet::blobs::{self, BlobUses};
use crate::fleet::chain;
use crate::fleet::delta_row::{DeltaColumns, DeltaRow};
use crate::fleet::event_row;
use crate::fleet::node_log::LogPosition;
use crate::fleet::pages::MarkKind;
use crate::fleet::statement::{Statement, storable};
use crate::fleet::summary_row::{self, SummaryRow};
use crate::fleet::thread_state::{RowState, ThreadState, as_i64};
use crate::records::item_of;
use crate::text::searchable;

/// Rows of an append, as columns.
#[derive(Debug)]
pub(super) struct AppendBatch {
    /// State of the thread after the append.
    pub(super) state: ThreadState,
    pub(super) head: i64,
    pub(super) tail: i64,
    pub(super) link: Vec<u8>,
    events: EventColumns,
    deltas: Vec<Arc<DeltaRow>>,
    /// Items whose stored deltas are deleted.
    settled: Vec<String>,
    marks: MarkColumns,
    texts: TextColumns,
    uses: BlobUses,
    summary: SummaryChange,
}

#[derive(Debug, Default)]
struct EventColumns {
    seq: Vec<i64>,
    at: Vec<i64>,
    form: Vec<i16>,
    bytes: Vec<i32>,
    link: Vec<Vec<u8>>,
    body: Vec<Vec<u8>>,
}

#[derive(Debug, Default)]
struct MarkColumns {
    kind: Vec<i16>,
    seq: Vec<i64>,
    turn: Vec<Option<String>>,
    since: Vec<Option<i64>>,
}

#[derive(Debug, Default)]
struct TextColumns {
    seq: Vec<i64>,
    text: Vec<String>,
}

/// Change of the thread's row in the lists.
#[derive(Debug)]
enum SummaryChange {
    None,
    Write(Box<SummaryRow>),
    Delete(uuid::Uuid),
}

impl AppendBatch {
    /// Encodes the records. Looks up the blobs that they name. Gathered deltas that they do not settle
    /// become rows. `position` is the end of the node log before the state was looked up.
    pub(super) async fn new(
        journal: &SharedJournal,
        thread: ThreadId,
        before: &ThreadState,
        records: &[Record],
        position: LogPosition,
    ) -> Result<Self, AppendError> {
        if records.last().is_some_and(|last| last.seq > super::SEQ_MAX) {
            let what = "the thread has used all its record numbers; fork it to continue";
            return Err(AppendError::Full(what.to_owned()));
        }
        let uses = blobs::uses_of(journal, thread, before.family, records).await?;
        let mut batch = Self {
            state: ThreadState {
                row_state: RowState::Live,
                head: before.newest(),
                gathered: Vec::new(),
                ..before.clone()
            },
            head: 0,
            tail: 0,
            link: Vec::new(),
            events: EventColumns::default(),
            deltas: Vec::new(),
            settled: Vec::new(),
            marks: MarkColumns::default(),
            texts: TextColumns::default(),
            uses,
            summary: SummaryChange::None,
        };
        let settled = settled(records);
        batch.settled = settled.keys().map(|item| storable(item.as_str())).collect();
        let is_settled = |row: &&Arc<DeltaRow>| batch.settled.contains(&row.item);
        let unsettled = before.gathered.iter().filter(|row| !is_settled(row));
        batch.deltas = unsettled.cloned().collect();
        for record in records {
            batch.state.head = record.seq;
            match &record.body {
                RecordBody::Event(event) => {
                    batch.event(record, event)?;
                    batch.own(event, position);
                }
                // A delta that the same append settles later is not worth a row.
                RecordBody::Delta(delta)
                    if settled.get(&delta.item).is_none_or(|at| *at < record.seq) =>
                {
                    batch.deltas.push(Arc::new(DeltaRow::new(record, delta)?));
                }
                RecordBody::Delta(_) => {}
            }
            Summary::fold(&mut batch.state.summary, record);
        }
        if batch.state.writer == Some(position.log) {
            batch.state.since = position.newest;
        }
        batch.head = as_i64(batch.state.head);
        batch.tail = as_i64(batch.state.tail);
        batch.link = batch.state.link.to_vec();
        batch.list(thread, before);
        Ok(batch)
    }

    fn event(&mut self, record: &Record, event: &Event) -> Result<(), AppendError> {
        let json = serde_json::to_vec(event).map_err(|error| unwritable(&error))?;
        let bytes = json.len();
        let (form, body) = event_row::encode(json);
        let link = chain::link(&self.state.link, record.seq, record.at, form, &body);
        self.state.link = link;
        self.state.tail = record.seq;
        let seq = as_i64(record.seq);
        self.events.seq.push(seq);
        self.events.at.push(record.at.0);
        self.events.form.push(form);
        self.events.bytes.push(as_i32(bytes));
        self.events.link.push(link.to_vec());
        self.events.body.push(body);
        self.mark(seq, event);
        if let Some(text) = searchable(event) {
            self.texts.seq.push(seq);
            self.texts.text.push(storable(&text.to_lowercase()));
        }
        Ok(())
    }

    fn mark(&mut self, seq: i64, event: &Event) {
        let mut add = |mark: MarkKind, turn: Option<&str>, since: Option<Seq>| {
            self.marks.kind.push(mark as i16);
            self.marks.seq.push(seq);
            self.marks.turn.push(turn.map(storable));
            self.marks.since.push(since.map(as_i64));
        };
        if item_of(event).is_some() {
            add(MarkKind::Item, None, None);
        }
        match event {
            Event::TurnStarted(it) => add(MarkKind::Turn, Some(it.turn.as_str()), None),
            Event::TurnEnded(_) => add(MarkKind::TurnEnd, None, None),
            Event::Reverted(it) => add(MarkKind::Revert, None, Some(it.at)),
            _ => {}
        }
    }

    /// Follows the owner of the thread: only its deltas go to a node log.
    fn own(&mut self, event: &Event, position: LogPosition) {
        match event {
            Event::Owned(it) => {
                self.state.writer = Some(position.log);
                self.state.owner = Some(storable(&it.node));
            }
            Event::Released {} => {
                self.state.writer = None;
                self.state.owner = None;
            }
            _ => {}
        }
    }

    fn list(&mut self, thread: ThreadId, before: &ThreadState) {
        let after = self.state.summary.as_ref();
        if !summary_row::differs(before.summary.as_ref(), after) {
            return;
        }
        self.summary = match after {
            Some(after) => SummaryChange::Write(Box::new(SummaryRow::new(thread, after))),
            None => SummaryChange::Delete(*thread.as_uuid()),
        };
    }

    /// Returns the rows of deltas.
    pub(super) fn deltas(&self) -> DeltaColumns<'_> {
        self.deltas.iter().map(|row| &**row).collect()
    }

    /// Adds the rows to a statement. They are written only if it moved the thread's row.
    pub(super) fn write<'a>(&'a self, statement: &mut Statement<'a>, deltas: &'a DeltaColumns<'a>) {
        self.events.write(statement);
        deltas.write(statement);
        if !self.settled.is_empty() {
            // Rows of this statement are not visible to it, and stay.
            let items = statement.bind(&self.settled);
            statement.push(&format!(
                ", settled AS (DELETE FROM deltas USING moved
                     WHERE deltas.log = moved.log AND deltas.item = ANY ({items}::text[]))"
            ));
        }
        self.marks.write(statement);
        self.texts.write(statement);
        self.uses.write(statement);
        match &self.summary {
            SummaryChange::None => {}
            SummaryChange::Write(row) => {
                statement.push(", listed AS (");
                row.write(statement, "FROM moved");
                statement.push(")");
            }
            SummaryChange::Delete(id) => {
                let id = statement.bind(id);
                statement.push(&format!(
                    ", unlisted AS (DELETE FROM summaries USING moved WHERE id = {id})"
                ));
            }
        }
    }
}

impl EventColumns {
    fn write<'a>(&'a self, statement: &mut Statement<'a>) {
        if self.seq.is_empty() {
            return;
        }
        let (seq, at) = (statement.bind(&self.seq), statement.bind(&self.at));
        let (form, bytes) = (statement.bind(&self.form), statement.bind(&self.bytes));
        let (link, body) = (statement.bind(&self.link), statement.bind(&self.body));
        statement.push(&format!(
            ", events AS (INSERT INTO records (log, seq, at, form, bytes, link, body)
                 SELECT moved.log, it.* FROM moved, unnest({seq}::bigint[], {at}::bigint[],
                     {form}::smallint[], {bytes}::integer[], {link}::bytea[], {body}::bytea[])
                     AS it)"
        ));
    }
}

impl MarkColumns {
    fn write<'a>(&'a self, statement: &mut Statement<'a>) {
        if self.seq.is_empty() {
            return;
        }
        let (kind, seq) = (statement.bind(&self.kind), statement.bind(&self.seq));
        let (turn, since) = (statement.bind(&self.turn), statement.bind(&self.since));
        statement.push(&format!(
            ", marked AS (INSERT INTO marks (log, kind, seq, turn, since)
                 SELECT moved.log, it.* FROM moved, unnest({kind}::smallint[], {seq}::bigint[],
                     {turn}::text[], {since}::bigint[]) AS it)"
        ));
    }
}

impl TextColumns {
    fn write<'a>(&'a self, statement: &mut Statement<'a>) {
        if self.seq.is_empty() {
            return;
        }
        let (seq, text) = (statement.bind(&self.seq), statement.bind(&self.text));
        statement.push(&format!(
            ", words AS (INSERT INTO texts (log, seq, text)
                 SELECT moved.log, it.* FROM moved, unnest({seq}::bigint[], {text}::text[]) AS it)"
        ));
    }
}

/// Returns the items that an append settles, and at which record.
fn settled(records: &[Record]) -> BTreeMap<&ItemId, Seq> {
    let settled = records.iter().filter_map(|record| match &record.body {
        RecordBody::Event(event) => event.settles().map(|item| (item, record.seq)),
        RecordBody::Delta(_) => None,
    });
    settled.collect()
}

fn unwritable(error: &serde_json::Error) -> AppendError {
    AppendError::Unavailable(format!("a record cannot be encoded: {error}"))
}

fn as_i32(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}
