//! Deliberate bugs. The simulator plants one at a time and must catch it. A product has none of
//! them: without the feature `planted`, every check here is a constant `false`.

/// A bug that can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(
    not(feature = "planted"),
    expect(dead_code, reason = "asked for, never planted")
)]
pub enum Bug {
    /// The journal appends without comparing the head.
    TwoWriters,
    /// The journal's conditional append ignores deltas, so a former owner can continue after they
    /// are lost.
    ZombieAfterDeltas,
    /// A new owner numbers on from the stored head instead of from the reserve.
    NumberReused,
    /// A cursor is read as the first number to send instead of the last one received.
    CursorOffByOne,
    /// The next owner starts a tool again that was already started.
    ToolRunAgain,
    /// The next owner forgets open requests.
    ApprovalLost,
    /// A request can be answered again.
    DoubleAnswer,
    /// Records are announced before they are stored.
    SentBeforeStored,
    /// A turn whose tools were all declined is not ended.
    UnendedTurn,
    /// Text is accepted for an item that is not open.
    OrphanDelta,
    /// An owner with an old epoch is accepted.
    LateEpoch,
    /// The list does not follow a change of name.
    StaleProjection,
    /// A call without an output stays in the model's context.
    PoisonedContext,
    /// A base leaves out the open requests.
    BaseDiffers,
    /// A call that was denied runs.
    DeniedRuns,
    /// One approval lets every waiting call run.
    YesForAll,
    /// More rights are granted than were requested.
    TooManyRights,
    /// A change is written as a whole although the user dropped hunks of it.
    DroppedHunkWritten,
    /// A node takes a thread without sealing the former node's log.
    LogNotSealed,
    /// A batch reads that its log is not sealed, and does not lock the row that a seal changes.
    FlagReadWithoutLock,
    /// A seal commits without waiting for the standby.
    SealNotSynchronous,
    /// Appends to a thread's rows that need not survive a loss of power do not wait for the standby.
    CommitClassLeaked,
    /// A statement without a response is taken for one that was not sent.
    UnknownAsUnavailable,
    /// The state of a thread is read from a replica.
    HeadFromReplica,
    /// Deltas are acknowledged before their batch is committed.
    BatchBeforeCommit,
    /// Batches that the database lost are not sent again.
    LostBatchForgotten,
    /// A statement that arrives after its doubt was settled has an effect.
    LateStatement,
    /// A doubt is settled by a read, which a change of the primary can contradict.
    DoubtSettledByRead,
    /// A subscriber reads on while the database lacks batches that were acknowledged.
    LostTextNotRead,
}

#[cfg(feature = "planted")]
mod planted {
    use super::Bug;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
        static SMALL: Cell<bool> = const { Cell::new(false) };
    }

    /// Makes bounds small on this thread of the process, so that short runs reach them.
    pub fn small_bounds(small: bool) {
        SMALL.set(small);
    }

    pub(crate) fn bound<T>(product: T, small: T) -> T {
        if SMALL.get() { small } else { product }
    }

    /// Plants a bug on this thread of the process, or removes it.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.set(bug);
    }

    pub(crate) fn planted(bug: Bug) -> bool {
        PLANTED.get() == Some(bug)
    }

    impl Bug {
        /// Every bug, in declaration order.
        pub const ALL: [Bug; 29] = [
            Bug::TwoWriters,
            Bug::ZombieAfterDeltas,
            Bug::NumberReused,
            Bug::CursorOffByOne,
            Bug::ToolRunAgain,
            Bug::ApprovalLost,
            Bug::DoubleAnswer,
            Bug::SentBeforeStored,
            Bug::UnendedTurn,
            Bug::OrphanDelta,
            Bug::LateEpoch,
            Bug::StaleProjection,
            Bug::PoisonedContext,
            Bug::BaseDiffers,
            Bug::DeniedRuns,
            Bug::YesForAll,
            Bug::TooManyRights,
            Bug::DroppedHunkWritten,
            Bug::LogNotSealed,
            Bug::FlagReadWithoutLock,
            Bug::SealNotSynchronous,
            Bug::CommitClassLeaked,
            Bug::UnknownAsUnavailable,
            Bug::HeadFromReplica,
            Bug::BatchBeforeCommit,
            Bug::LostBatchForgotten,
            Bug::LateStatement,
            Bug::DoubtSettledByRead,
            Bug::LostTextNotRead,
        ];

        /// Whether this is a bug of the fleet's journal, which only seeds of a fleet can show.
        pub fn is_of_fleet(self) -> bool {
            self >= Bug::LogNotSealed
        }

        /// Whether this bug is planted now.
        pub fn is_planted(self) -> bool {
            planted(self)
        }
    }
}

#[cfg(feature = "planted")]
pub(crate) use planted::{bound, planted};
#[cfg(feature = "planted")]
pub use planted::{plant, small_bounds};

/// Returns the product's bound; a simulation with small bounds returns the second.
#[cfg(not(feature = "planted"))]
pub(crate) const fn bound<T: Copy>(product: T, _small: T) -> T {
    product
}

/// Always false: a product has no planted bugs.
#[cfg(not(feature = "planted"))]
pub(crate) const fn planted(_: Bug) -> bool {
    false
}
