//! What a user of the rules could notice.

mod context;
/// Goals.
mod goal;
/// Journals that released versions wrote.
mod golden;
/// Laws of the fold, on random lives of a thread.
mod laws;
/// A life of a thread, driven by a list of choices.
mod life;
/// Which threads a list takes, and what it shows of them.
mod lists;
/// The owner's round.
mod owner;
/// What is said of acts.
mod policy;
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
/// The bridge to the wire.
mod tell;
/// The words of rule files.
mod words;
