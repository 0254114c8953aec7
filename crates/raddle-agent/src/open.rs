//! Loading a thread: the newest base, and the records after it.

use raddle_core::ports::{Journal, ReadError};
use raddle_core::{Base, LEVEL, Seq, Tail, Thread, ThreadId};

/// Maximum bytes of one journal read.
pub(crate) const PAGE_BYTES: usize = 1 << 20;

/// Folds a thread up to a record, which may be reverted since.
pub(crate) async fn open_at(
    journal: &dyn Journal,
    id: ThreadId,
    at: Seq,
) -> Result<Thread, ReadError> {
    let base = journal.base(id, Some(at)).await?;
    let mut thread = base
        .filter(|base| base.version == Base::VERSION)
        .map_or_else(Thread::new, |base| base.thread);
    while thread.head() < at {
        let page = journal.read(id, thread.head(), PAGE_BYTES).await?;
        let known = page.iter().take_while(|record| record.seq <= at);
        let count = known.map(|record| thread.apply(record)).count();
        if count < page.len() || page.is_empty() {
            break;
        }
    }
    Ok(thread)
}

/// Folds a thread up to its newest record. Also returns how much was folded after its base.
pub(crate) async fn open(journal: &dyn Journal, id: ThreadId) -> Result<(Thread, Tail), ReadError> {
    let head = journal.head(id).await?;
    if head == Seq::ZERO {
        return Err(ReadError::NotFound);
    }
    let base = journal.base(id, None).await?;
    let mut thread = base
        .filter(|base| base.version == Base::VERSION)
        .map_or_else(Thread::new, |base| base.thread);
    let mut tail = Tail::default();
    read_on(journal, id, head, &mut thread, &mut tail).await?;
    Ok((thread, tail))
}

/// Folds the records of a thread that it lacks, up to this head at least. Returns whether there
/// were any.
pub(crate) async fn read_on(
    journal: &dyn Journal,
    id: ThreadId,
    head: Seq,
    thread: &mut Thread,
    tail: &mut Tail,
) -> Result<bool, ReadError> {
    let before = thread.head();
    // Another process may append in between; then an append at this head fails.
    while thread.head() < head {
        let page = journal.read(id, thread.head(), PAGE_BYTES).await?;
        if page.is_empty() {
            break;
        }
        for record in &page {
            thread.apply(record);
            tail.count(record);
        }
    }
    // A base hides the barrier record that would report the newer level.
    if thread.level() > LEVEL {
        return Err(ReadError::Newer(format!("level {}", thread.level())));
    }
    Ok(thread.head() > before)
}
