//! Row ids: one integer for a thread and a record of it, so that a thread's rows are adjacent in a
//! table that is keyed by row id alone.

use raddle_core::Seq;

/// Bits of a record's number; the remaining 27 are the thread's number.
pub(super) const SEQ_BITS: u32 = 36;

/// Highest number of a record.
pub(super) const SEQ_MAX: Seq = Seq((1 << SEQ_BITS) - 1);

/// Highest number of a thread.
pub(super) const NUMBER_MAX: i64 = (1 << 27) - 2;

/// Returns the key of a record, or the closest possible key.
pub(super) fn key(number: i64, seq: Seq) -> i64 {
    let seq = seq.min(SEQ_MAX).0;
    (number << SEQ_BITS) | i64::try_from(seq).unwrap_or(0)
}

/// Returns the record's number in a key.
pub(super) fn seq(key: i64) -> Seq {
    Seq(u64::try_from(key).unwrap_or(0) & SEQ_MAX.0)
}

/// Returns the thread's number in a key.
pub(super) fn number(key: i64) -> i64 {
    key >> SEQ_BITS
}

/// Returns the first key of a thread.
pub(super) fn first(number: i64) -> i64 {
    key(number, Seq::ZERO)
}

/// Returns the last key of a thread.
pub(super) fn last(number: i64) -> i64 {
    key(number, SEQ_MAX)
}
