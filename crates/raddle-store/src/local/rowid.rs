//! One integer for a thread and a record of it, so that a thread's rows lie side by side in a table
//! whose rows are found by nothing but their number.

use raddle_core::Seq;

/// How many bits a record's number has; a thread's has the 27 that remain.
pub(super) const SEQ_BITS: u32 = 36;

/// The highest number of a record.
pub(super) const SEQ_MAX: Seq = Seq((1 << SEQ_BITS) - 1);

/// The highest number of a thread.
pub(super) const NUMBER_MAX: i64 = (1 << 27) - 2;

/// The key of a record, or the closest to it that there can be.
pub(super) fn key(number: i64, seq: Seq) -> i64 {
    let seq = seq.min(SEQ_MAX).0;
    (number << SEQ_BITS) | i64::try_from(seq).unwrap_or(0)
}

/// The record's number in a key.
pub(super) fn seq(key: i64) -> Seq {
    Seq(u64::try_from(key).unwrap_or(0) & SEQ_MAX.0)
}

/// The thread's number in a key.
pub(super) fn number(key: i64) -> i64 {
    key >> SEQ_BITS
}

/// The keys of a thread: from the first to the last.
pub(super) fn first(number: i64) -> i64 {
    key(number, Seq::ZERO)
}

/// See [`first`].
pub(super) fn last(number: i64) -> i64 {
    key(number, SEQ_MAX)
}
