//! What a user of the rules could notice.

mod context;
/// The words of rule files.
mod fixtures;
/// Goals.
mod goal;
/// Journals that released versions wrote.
mod golden;
/// Which threads a list takes, and what it shows of them.
mod lists;
/// What is said of acts.
mod policy;
/// Laws of the fold, on random lives of a thread.
mod properties;
/// The queue's bounds.
mod queue;
/// Small rules of single records.
mod record;
/// Requests that are settled.
mod requests;
/// Going back, and how often.
mod revert;
/// Rule files: what a command means in a situation.
mod rules;
/// A life of a thread, driven by a list of choices.
mod simulated;
/// The bridge to the wire.
mod tell;
/// The owner's round.
mod thread_writer;
