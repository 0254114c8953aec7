//! Deliberate bugs. The simulator plants one at a time and must catch it; a product has none of them,
//! because without the feature `planted` every question here is answered with a constant no.

/// A bug that can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(
    not(feature = "planted"),
    expect(dead_code, reason = "asked for, never planted")
)]
pub enum Bug {
    /// The journal does not look at the head before it appends.
    TwoWriters,
    /// The journal's fence forgets deltas, so a former owner can go on after they vanished.
    ZombieAfterDeltas,
    /// A new owner counts on from the head it finds, not from the reserve.
    NumberReused,
    /// A cursor is read as the first number wanted, not the last one seen.
    CursorOffByOne,
    /// A tool that was started is started again by the next owner.
    ToolRunAgain,
    /// Open requests are forgotten by the next owner.
    ApprovalLost,
    /// A request can be answered again.
    DoubleAnswer,
    /// Records are told while they are being stored.
    ToldBeforeStored,
    /// A turn whose tools were all declined is not ended.
    UnendedTurn,
    /// Text is taken for an item that is not open.
    OrphanDelta,
    /// An owner with an old epoch is let in.
    LateEpoch,
    /// The list does not follow a change of name.
    StaleProjection,
    /// A call without an output stays in the model's context.
    PoisonedContext,
    /// A base leaves out the open requests.
    BaseDiffers,
    /// A call that was denied runs.
    DeniedRuns,
    /// A yes to one call lets all run that wait for one.
    YesForAll,
    /// More rights are given than were asked for.
    TooManyRights,
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
        /// All there are.
        pub const ALL: [Bug; 17] = [
            Bug::TwoWriters,
            Bug::ZombieAfterDeltas,
            Bug::NumberReused,
            Bug::CursorOffByOne,
            Bug::ToolRunAgain,
            Bug::ApprovalLost,
            Bug::DoubleAnswer,
            Bug::ToldBeforeStored,
            Bug::UnendedTurn,
            Bug::OrphanDelta,
            Bug::LateEpoch,
            Bug::StaleProjection,
            Bug::PoisonedContext,
            Bug::BaseDiffers,
            Bug::DeniedRuns,
            Bug::YesForAll,
            Bug::TooManyRights,
        ];

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

/// A bound: the first, except in a simulation that asked for small ones.
#[cfg(not(feature = "planted"))]
pub(crate) const fn bound<T: Copy>(product: T, _small: T) -> T {
    product
}

/// Whether a bug is planted: never, in a product.
#[cfg(not(feature = "planted"))]
pub(crate) const fn planted(_: Bug) -> bool {
    false
}
