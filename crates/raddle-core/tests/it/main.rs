//! What a user of the rules could notice.

mod context;
/// Journals that released versions wrote.
mod golden;
/// Laws of the fold, on random lives of a thread.
mod laws;
/// A life of a thread, driven by a list of choices.
mod life;
/// The owner's round.
mod owner;
/// Rule files: what a command means in a situation.
mod rules;
/// The bridge to the wire.
mod tell;
/// The words of rule files.
mod words;
