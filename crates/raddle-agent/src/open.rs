//! Opening a thread: the newest base, and what follows it.

use raddle_core::ports::{Journal, ReadError};
use raddle_core::{Base, LEVEL, Seq, Tail, Thread, ThreadId};

/// How much of a journal is read at a time.
pub(crate) const PAGE_BYTES: usize = 1 << 20;

/// Folds a thread up to a record that it has, or once had.
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

/// Folds a thread up to its newest record. Answers also with how much was folded after its base.
pub(crate) async fn open(journal: &dyn Journal, id: ThreadId) -> Result<(Thread, Tail), ReadError> {
    let found = journal.head(id).await?;
    if found == Seq::ZERO {
        return Err(ReadError::NotFound);
    }
    let base = journal.base(id, None).await?;
    let mut thread = base
        .filter(|base| base.version == Base::VERSION)
        .map_or_else(Thread::new, |base| base.thread);
    let mut tail = Tail::default();
    // Someone else may append meanwhile; then the head that was found is no longer the fence.
    while thread.head() < found {
        let page = journal.read(id, thread.head(), PAGE_BYTES).await?;
        if page.is_empty() {
            break;
        }
        for record in &page {
            thread.apply(record);
            tail.count(record);
        }
    }
    // A base hides the barrier that would have said so.
    if thread.level() > LEVEL {
        return Err(ReadError::Newer(format!("level {}", thread.level())));
    }
    Ok((thread, tail))
}
