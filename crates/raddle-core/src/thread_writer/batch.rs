//! One append and the actions that follow once it is stored.

use super::{Announcement, ThreadWriter, Token, reserve};
use crate::{
    Class, Command, CommandOutcome, Delta, Event, ItemId, Record, RecordBody, Refusal,
    RequestNumber, Reserved, Resolution, Seq, Timestamp, notifications_of,
};

/// Size of a round at which it accepts no more reports of work.
const ROUND_BYTES_MAX: u64 = 256 << 10;
fn round_records_max() -> usize {
    crate::bugs::bound(512, 8)
}

/// Decisions of one round.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) after: Seq,
    pub(super) records: Vec<Record>,
    pub(super) class: Class,
    pub(super) replies: Vec<(Token, Result<CommandOutcome, Refusal>)>,
    pub(super) subscribers: Vec<(Token, Option<Seq>)>,
    pub(super) announcements: Vec<Announcement>,
    pub(super) asks: Vec<RequestNumber>,
    /// Answers for running tools.
    pub(super) deliveries: Vec<(ItemId, RequestNumber, Resolution)>,
    /// Whether a snapshot should follow.
    pub(super) base: bool,
    pub(super) released: bool,
    bytes: u64,
    /// Whether the newest record is a delta that may still grow.
    growing: bool,
}

impl Batch {
    pub(super) fn new(after: Seq) -> Self {
        Self {
            after,
            records: Vec::new(),
            class: Class::Process,
            replies: Vec::new(),
            subscribers: Vec::new(),
            announcements: Vec::new(),
            asks: Vec::new(),
            deliveries: Vec::new(),
            base: false,
            released: false,
            bytes: 0,
            growing: false,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes >= ROUND_BYTES_MAX || self.records.len() >= round_records_max()
    }

    /// Head once the batch is stored.
    pub(super) fn last(&self) -> Seq {
        self.records.last().map_or(self.after, |last| last.seq)
    }

    /// Extends the newest record by a delta that continues it: one record, one row, one
    /// notification.
    fn merge(&mut self, delta: &Delta) -> Option<Seq> {
        if !self.growing {
            return None;
        }
        let newest = self.records.last_mut()?;
        let RecordBody::Delta(before) = &mut newest.body else {
            return None;
        };
        let bytes = before.text.len() + delta.text.len();
        if before.item != delta.item || before.part != delta.part || bytes > Delta::BYTES_MAX {
            return None;
        }
        before.text.push_str(&delta.text);
        self.bytes += delta.text.len() as u64;
        Some(newest.seq)
    }
}

impl ThreadWriter {
    /// Decides a command and adds its records to the batch.
    pub(super) fn command(
        &mut self,
        batch: &mut Batch,
        command: Command,
        now: Timestamp,
    ) -> Result<CommandOutcome, Refusal> {
        let decision = self.thread.decision(command, now)?;
        self.push(batch, decision.bodies, now);
        Ok(decision.outcome)
    }

    /// Numbers the decided records, applies them, and prepares their announcements.
    pub(super) fn push(&mut self, batch: &mut Batch, bodies: Vec<RecordBody>, now: Timestamp) {
        for body in bodies {
            self.push_one(batch, body, now);
        }
    }

    fn push_one(&mut self, batch: &mut Batch, mut body: RecordBody, now: Timestamp) {
        self.meter.take_if(|meter| meter.fill_in(&mut body));
        if let RecordBody::Delta(delta) = &body
            && let Some(seq) = batch.merge(delta)
        {
            let record = Record { seq, at: now, body };
            return self.thread.apply(&record);
        }
        let barrier = match &body {
            RecordBody::Event(event) => {
                matches!(**event, Event::Owned(_) | Event::ThreadStarted(_))
            }
            RecordBody::Delta(_) => false,
        };
        // Renewed by half, so that all of an append lies within an earlier reserve: otherwise its
        // newest number could be that of a later owner's barrier.
        let half = self.next.plus(reserve() / 2);
        if half >= self.thread.reserved() && !barrier {
            let to = self.next.plus(reserve());
            let reserved = Event::Reserved(Reserved { to });
            self.add_record(batch, reserved.into(), now);
        }
        self.add_record(batch, body, now);
    }

    /// Announces the newest record, if that had to wait because it could still grow.
    pub(super) fn finish(&self, batch: &mut Batch) {
        if std::mem::take(&mut batch.growing)
            && let Some(record) = batch.records.last()
        {
            batch.announcements.push(Announcement {
                record: record.clone(),
                notifications: notifications_of(&self.thread, record),
            });
        }
    }

    fn add_record(&mut self, batch: &mut Batch, body: RecordBody, now: Timestamp) {
        self.finish(batch);
        let record = Record {
            seq: self.next,
            at: now,
            body,
        };
        self.next = self.next.next();
        let bytes = weight(&record.body);
        batch.bytes += bytes;
        batch.class = batch.class.max(record.body.class());
        self.bytes_since_base += bytes;
        if let RecordBody::Event(event) = &record.body {
            self.events_since_base += 1;
            self.note(batch, event);
        }
        self.thread.apply(&record);
        if matches!(record.body, RecordBody::Delta(_)) {
            batch.growing = true;
        } else {
            batch.announcements.push(Announcement {
                record: record.clone(),
                notifications: notifications_of(&self.thread, &record),
            });
        }
        batch.records.push(record);
    }

    /// Collects what follows from an event besides its announcement; called before the event is
    /// applied.
    fn note(&self, batch: &mut Batch, event: &Event) {
        match event {
            Event::RequestOpened(it) => batch.asks.push(it.request),
            Event::RequestResolved(it) => {
                batch.asks.retain(|request| *request != it.request);
                let open = self.thread.requests.get(&it.request);
                let item = open.and_then(|open| self.thread.open_item(&open.item));
                if let Some(item) = item.filter(|item| item.started) {
                    let item = item.item.id.clone();
                    batch
                        .deliveries
                        .push((item, it.request, it.resolution.clone()));
                }
            }
            Event::Compacted(_) | Event::Reverted(_) | Event::Forked(_) => batch.base = true,
            Event::Released {} => batch.released = true,
            _ => {}
        }
    }
}

/// Estimates the bytes of a stored record.
pub fn weight(body: &RecordBody) -> u64 {
    const REST: u64 = 100;
    match body {
        RecordBody::Delta(delta) => delta.text.len() as u64 + REST,
        RecordBody::Event(event) => {
            let mut counted = ByteCounter(0);
            // Counting never fails, and the journal rejects what cannot be serialized.
            let _ = serde_json::to_writer(&mut counted, event);
            counted.0 + REST
        }
    }
}

/// Counts the bytes written to it.
struct ByteCounter(u64);

impl std::io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
