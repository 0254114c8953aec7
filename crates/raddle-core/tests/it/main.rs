//! Observable behaviour of the rules of a thread.

mod context;
/// Language of the rule files.
mod fixtures;
/// Goals, where rule files cannot reach.
mod goal;
/// Journals that released versions wrote.
mod golden;
/// Filters, content and order of lists.
mod lists;
/// Notifications on the wire.
mod notifications;
/// Rulings of the policy on acts.
mod policy;
/// Laws of the fold, on random histories of a thread.
mod properties;
/// Bounds of the queue.
mod queue;
/// Rules of single records.
mod record;
/// Resolved requests, and granted rights.
mod requests;
/// Reverts and their limits.
mod revert;
/// Rule files: the effect of a command in a situation.
mod rules;
/// A simulated thread, driven by a list of choices.
mod simulated;
/// State machine of the thread writer.
mod thread_writer;
