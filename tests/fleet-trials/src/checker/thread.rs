//! Checks of one thread.

use std::collections::{HashMap, HashSet};

use super::index::{Attempt, Ownership, TakenLog, ThreadHistory};
use super::{AllowedLosses, BrokenPromise, HistoryVerdict, HistoryViolation};
use crate::history::{AppendOutcome, Durability, NoteKind, RecordNote};

/// Records of the final log that one owner wrote.
struct Segment<'a> {
    barrier: &'a RecordNote,
    epoch: u64,
    found: u64,
    records: &'a [RecordNote],
    /// Lives that intended exactly this barrier: one, unless its process repeated itself.
    lives: Vec<&'a Ownership>,
}

struct ThreadCheck<'a> {
    thread: usize,
    history: &'a ThreadHistory,
    log: &'a [RecordNote],
    losses: AllowedLosses,
    segments: Vec<Segment<'a>>,
    verdict: &'a mut HistoryVerdict,
}

/// Key of a record: its number, and the hash of its content.
type RecordKey = (u64, u64);

fn key(note: &RecordNote) -> RecordKey {
    (note.seq, note.hash)
}

pub fn check(
    thread: usize,
    history: &ThreadHistory,
    log: &[RecordNote],
    losses: AllowedLosses,
    verdict: &mut HistoryVerdict,
) {
    let mut check = ThreadCheck {
        thread,
        history,
        log,
        losses,
        segments: segments(history, log),
        verdict,
    };
    check.count();
    check.order();
    check.writers();
    check.acknowledged();
    check.numbers();
    check.found_logs();
    check.fencing();
    check.turns();
}

/// Divides a log at its barriers. Records before the first barrier belong to it: an append creates a
/// thread together with its first barrier.
fn segments<'a>(history: &'a ThreadHistory, log: &'a [RecordNote]) -> Vec<Segment<'a>> {
    let mut writers: HashMap<RecordKey, Vec<&Ownership>> = HashMap::new();
    for attempt in &history.attempts {
        for note in &attempt.records {
            if matches!(note.kind, NoteKind::Barrier { .. }) {
                let lives = writers.entry(key(note)).or_default();
                if !lives.contains(&&attempt.life) {
                    lives.push(&attempt.life);
                }
            }
        }
    }
    let barriers: Vec<usize> = (0..log.len())
        .filter(|at| matches!(log[*at].kind, NoteKind::Barrier { .. }))
        .collect();
    let mut segments = Vec::new();
    for (index, at) in barriers.iter().enumerate() {
        let NoteKind::Barrier { epoch, found } = log[*at].kind else {
            continue;
        };
        let from = if index == 0 { 0 } else { *at };
        let to = barriers.get(index + 1).copied().unwrap_or(log.len());
        segments.push(Segment {
            barrier: &log[*at],
            epoch,
            found,
            records: &log[from..to],
            lives: writers.remove(&key(&log[*at])).unwrap_or_default(),
        });
    }
    segments
}

/// Whether a log has a record, or has settled the item of a delta since.
struct FoundRecords<'a> {
    keys: HashSet<RecordKey>,
    settled: HashMap<&'a str, u64>,
    last: u64,
}

impl<'a> FoundRecords<'a> {
    fn new(records: &'a [RecordNote]) -> Self {
        let mut settled: HashMap<&str, u64> = HashMap::new();
        for note in records {
            if let NoteKind::Settles { item } = &note.kind {
                let newest = settled.entry(item).or_default();
                *newest = note.seq.max(*newest);
            }
        }
        Self {
            keys: records.iter().map(key).collect(),
            settled,
            last: records.last().map_or(0, |note| note.seq),
        }
    }

    fn has(&self, note: &RecordNote) -> bool {
        let is_settled = |item: &str| self.settled.get(item).is_some_and(|at| *at > note.seq);
        self.keys.contains(&key(note))
            || matches!(&note.kind, NoteKind::Delta { item } if is_settled(item))
    }
}

impl<'a> ThreadCheck<'a> {
    fn violation(&mut self, promise: BrokenPromise, seq: u64) {
        self.verdict.violations.push(HistoryViolation {
            thread: self.thread,
            promise,
            seq,
        });
    }

    fn count(&mut self) {
        let log = FoundRecords::new(self.log);
        let figures = &mut self.verdict.figures;
        figures.records += self.log.len() as u64;
        figures.owners += self.segments.len() as u64;
        for attempt in &self.history.attempts {
            match attempt.outcome {
                Some(AppendOutcome::Stored) => figures.acknowledged += 1,
                Some(AppendOutcome::Conflict) => figures.conflicts += 1,
                Some(AppendOutcome::Failed) => figures.failed += 1,
                Some(AppendOutcome::Unknown) | None => {
                    figures.unknown += 1;
                    let is_stored = attempt.records.iter().all(|note| log.has(note));
                    figures.unknown_stored += u64::from(is_stored);
                }
            }
        }
    }

    /// Numbers and epochs rise.
    fn order(&mut self) {
        for pair in self.log.windows(2) {
            if pair[1].seq <= pair[0].seq {
                self.violation(BrokenPromise::NumbersFall, pair[1].seq);
            }
        }
        let epochs: Vec<(u64, u64)> = self
            .segments
            .iter()
            .map(|it| (it.epoch, it.barrier.seq))
            .collect();
        for pair in epochs.windows(2) {
            if pair[1].0 <= pair[0].0 {
                self.violation(BrokenPromise::EpochsFall, pair[1].1);
            }
        }
    }

    /// Each record was written by the owner of its segment, and was not reported as failed.
    fn writers(&mut self) {
        let mut intended: HashMap<(&Ownership, RecordKey), bool> = HashMap::new();
        for attempt in &self.history.attempts {
            for note in &attempt.records {
                let may_be_stored = intended.entry((&attempt.life, key(note))).or_default();
                *may_be_stored |= attempt.may_be_stored();
            }
        }
        let mut problems = Vec::new();
        if self.segments.is_empty() {
            problems.extend(
                self.log
                    .iter()
                    .map(|it| (BrokenPromise::ForeignRecord, it.seq)),
            );
        }
        for segment in &self.segments {
            for note in segment.records {
                let known = segment
                    .lives
                    .iter()
                    .filter_map(|life| intended.get(&(*life, key(note))));
                let known: Vec<bool> = known.copied().collect();
                if known.is_empty() {
                    problems.push((BrokenPromise::ForeignRecord, note.seq));
                } else if !known.contains(&true) {
                    problems.push((BrokenPromise::FailedAppendStored, note.seq));
                }
            }
        }
        for (promise, seq) in problems {
            self.violation(promise, seq);
        }
    }

    /// The segment of a life, if its barrier is in the log.
    fn segment_of(&self, life: &Ownership) -> Option<usize> {
        self.segments.iter().position(|it| it.lives.contains(&life))
    }

    /// The log that the owner of a segment found before its barrier.
    fn found_by(&self, segment: usize) -> Option<&'a TakenLog> {
        let segment = self.segments.get(segment)?;
        let mut lives = segment.lives.iter();
        lives.find_map(|life| self.history.taken.get(*life))
    }

    /// Acknowledged appends are in the log, or their loss is allowed and visible.
    fn acknowledged(&mut self) {
        let log = FoundRecords::new(self.log);
        // The log that each next owner found; the final log for the last.
        let found: Vec<FoundRecords<'_>> = (0..self.segments.len())
            .map(|at| match self.found_by(at + 1) {
                Some(taken) => FoundRecords::new(&taken.records),
                None => FoundRecords::new(self.log),
            })
            .collect();
        let history = self.history;
        let mut segments_with_loss = HashSet::new();
        for attempt in history.attempts.iter().filter(|it| it.is_acknowledged()) {
            let segment = self.segment_of(&attempt.life);
            for note in &attempt.records {
                let records = segment.map_or(&log, |at| &found[at]);
                if records.has(note) {
                    continue;
                }
                let promise = self.loss(attempt, note, segment, records.last);
                match promise {
                    Some(promise) => self.violation(promise, note.seq),
                    None => {
                        self.verdict.figures.lost_records += 1;
                        segments_with_loss.insert(segment);
                    }
                }
            }
        }
        self.verdict.figures.losses += segments_with_loss.len() as u64;
    }

    /// The promise that the loss of an acknowledged record breaks.
    fn loss(
        &self,
        attempt: &Attempt,
        note: &RecordNote,
        segment: Option<usize>,
        last: u64,
    ) -> Option<BrokenPromise> {
        let is_later = note.seq > last;
        match (attempt.durable, self.losses) {
            (Durability::Power, _) => Some(BrokenPromise::EventLost),
            (Durability::Process, AllowedLosses::None) => Some(BrokenPromise::DeltaLost),
            (Durability::Process, AllowedLosses::Unsynced) if !is_later => {
                Some(BrokenPromise::DeltaLost)
            }
            (Durability::Process, AllowedLosses::Unsynced) => {
                let next = segment.and_then(|at| self.segments.get(at + 1));
                let is_expired =
                    next.is_some_and(|it| it.found < note.seq && note.seq < it.barrier.seq);
                (!is_expired).then_some(BrokenPromise::LossNotExpired)
            }
        }
    }

    /// A number that was acknowledged or found never gets other content.
    fn numbers(&mut self) {
        let acknowledged = self.history.attempts.iter();
        let acknowledged = acknowledged.filter(|it| it.is_acknowledged());
        let mut announced: Vec<&RecordNote> = acknowledged.flat_map(|it| &it.records).collect();
        for at in 0..self.segments.len() {
            announced.extend(self.found_by(at).into_iter().flat_map(|it| &it.records));
        }
        announced.extend(self.log);
        let mut contents: HashMap<u64, u64> = HashMap::new();
        let mut reused = HashSet::new();
        for note in announced {
            if *contents.entry(note.seq).or_insert(note.hash) != note.hash {
                reused.insert(note.seq);
            }
        }
        for seq in reused {
            self.violation(BrokenPromise::NumberReused, seq);
        }
    }

    /// The final log has what each owner found before its barrier, and nothing else there.
    fn found_logs(&mut self) {
        let log = FoundRecords::new(self.log);
        let mut problems = Vec::new();
        for at in 0..self.segments.len() {
            let Some(taken) = self.found_by(at) else {
                continue;
            };
            let gone = taken.records.iter().filter(|note| !log.has(note));
            problems.extend(gone.map(|note| (BrokenPromise::RecordVanished, note.seq)));
            let found = FoundRecords::new(&taken.records);
            let before = self.segments[..at].iter().flat_map(|it| it.records);
            let new = before.filter(|note| !found.has(note));
            problems.extend(new.map(|note| (BrokenPromise::RecordAppeared, note.seq)));
        }
        problems.sort_unstable();
        problems.dedup();
        for (promise, seq) in problems {
            self.violation(promise, seq);
        }
    }

    /// No append is acknowledged that began after a later owner had taken the thread.
    fn fencing(&mut self) {
        let history = self.history;
        let taken: Vec<Option<u64>> = (0..self.segments.len())
            .map(|at| self.found_by(at).map(|it| it.at))
            .collect();
        // The earliest take of a later owner, for each segment.
        let mut taken_after = vec![u64::MAX; taken.len()];
        for at in (0..taken.len().saturating_sub(1)).rev() {
            taken_after[at] = taken_after[at + 1].min(taken[at + 1].unwrap_or(u64::MAX));
        }
        for attempt in history.attempts.iter().filter(|it| it.is_acknowledged()) {
            let Some(segment) = self.segment_of(&attempt.life) else {
                continue;
            };
            if attempt.at <= taken_after[segment] {
                continue;
            }
            // A primary that another has replaced may acknowledge what it loses when it returns.
            if attempt.durable == Durability::Process && self.losses == AllowedLosses::Unsynced {
                self.verdict.figures.stale += attempt.records.len() as u64;
            } else {
                let seq = attempt.records.first().map_or(0, |note| note.seq);
                self.violation(BrokenPromise::FormerOwnerWrite, seq);
            }
        }
    }

    /// Each turn ends once.
    fn turns(&mut self) {
        let mut ends: HashMap<&str, (u64, u64)> = HashMap::new();
        for note in self.log {
            match &note.kind {
                NoteKind::TurnStarted { turn } => {
                    ends.entry(turn).or_default().1 = note.seq;
                    self.verdict.figures.turns += 1;
                }
                NoteKind::TurnEnded { turn } => ends.entry(turn).or_default().0 += 1,
                _ => {}
            }
        }
        let mut wrong: Vec<u64> = ends
            .values()
            .filter(|it| it.0 != 1)
            .map(|it| it.1)
            .collect();
        wrong.sort_unstable();
        for seq in wrong {
            self.violation(BrokenPromise::TurnEnds, seq);
        }
    }
}
