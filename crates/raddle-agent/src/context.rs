//! What the model reads, built from the journal when it is needed.

use raddle_core::ports::{Journal, ReadError};
use raddle_core::{Context, Seq, Span, ThreadId};

use crate::open::PAGE_BYTES;

/// The context of a thread's lineage, up to its newest record.
pub(crate) async fn build(
    journal: &dyn Journal,
    id: ThreadId,
    lineage: &[Span],
) -> Result<Context, ReadError> {
    let mut context = Context::new();
    for span in lineage {
        let mut after = Seq(span.from.0.saturating_sub(1));
        // Of one record not a page is read.
        let is_one = span.until == Some(span.from.next());
        let bytes_max = if is_one { 1 } else { PAGE_BYTES };
        loop {
            let page = journal.read(id, after, bytes_max).await?;
            let Some(last) = page.last() else {
                break;
            };
            after = last.seq;
            let before = page.iter().filter(|record| span.holds(record.seq));
            before.for_each(|record| context.apply(record));
            if span.until.is_some_and(|until| after.next() >= until) {
                break;
            }
        }
    }
    Ok(context)
}
