//! What has happened since the start, in numbers: for those who watch the server, not for those who use it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use raddle_core::ports::AppendError;
use raddle_core::{Class, Event, FailureKind, ModelEnd, Record, RecordBody, TurnEnd, Usage};

/// How many providers are counted apart.
const PROVIDERS_MAX: usize = 64;

/// Where the others are counted.
const OTHER: &str = "other";

/// The numbers of all threads of a process.
#[derive(Debug, Default)]
pub struct Counters {
    /// Turns that began.
    pub turns_started: CounterCell,
    /// Turns that ended, by how.
    pub turns_ended: LabeledCounter,
    /// Calls of a model that ended, by how.
    pub model_calls: LabeledCounter,
    /// Of these, those that are made again.
    pub model_retries: CounterCell,
    /// Tokens of these calls, by kind.
    pub tokens: LabeledCounter,
    /// The same by provider.
    pub provider_tokens: ProviderTokens,
    /// Appends that must survive the power's loss.
    pub appends_power: Timings,
    /// Appends that must survive the process's death.
    pub appends_process: Timings,
    /// Appends that were not taken, by why.
    pub appends_failed: LabeledCounter,
    /// How often someone read too slowly to hear live.
    pub fell_behind: CounterCell,
    /// Appends under way, those that wait in line included.
    pub appends_waiting: CounterCell,
}

/// One number.
#[derive(Debug, Default)]
pub struct CounterCell(AtomicU64);

/// One number for each of a few names.
#[derive(Debug, Default)]
pub struct LabeledCounter(Mutex<BTreeMap<&'static str, u64>>);

/// Tokens for each of the providers that answered.
#[derive(Debug, Default)]
pub struct ProviderTokens(Mutex<BTreeMap<String, Usage>>);

/// How often something happened, and how long it took altogether.
#[derive(Debug, Default)]
pub struct Timings {
    count: CounterCell,
    nanoseconds: CounterCell,
}

impl CounterCell {
    /// Adds.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    fn take(&self, less: u64) {
        self.0.fetch_sub(less, Ordering::Relaxed);
    }

    /// How much it is.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl LabeledCounter {
    /// Adds to one. The names are few and written in the code, so this cannot grow.
    pub fn add(&self, name: &'static str, more: u64) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(name).or_default();
        *count = count.saturating_add(more);
    }

    /// All that were ever added to, by their names.
    pub fn all(&self) -> BTreeMap<&'static str, u64> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl ProviderTokens {
    /// Adds to a provider's. Their names are keys of the configuration; what is no plain name, and what is one
    /// too many, is counted together.
    pub(crate) fn add(&self, provider: Option<&str>, usage: &Usage) {
        let is_plain = |it: &&str| {
            let mut letters = it.chars();
            it.len() <= 64 && letters.all(|it| it.is_ascii_alphanumeric() || "-_.".contains(it))
        };
        let name = provider.filter(is_plain).unwrap_or(OTHER);
        let mut shares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = shares.len() < PROVIDERS_MAX || shares.contains_key(name);
        let name = if has_room { name } else { OTHER };
        let share = shares.entry(name.to_owned()).or_default();
        *share = share.plus(usage);
    }

    /// All, by their names.
    pub fn all(&self) -> BTreeMap<String, Usage> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Timings {
    fn add(&self, took: Duration) {
        self.count.add(1);
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.add(nanoseconds);
    }

    /// How often.
    pub fn count(&self) -> u64 {
        self.count.get()
    }

    /// How long altogether.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.get())
    }
}

/// An append under way.
pub(crate) struct AppendTimer<'a> {
    counters: &'a Counters,
    begun: Instant,
}

impl Counters {
    /// An append begins.
    pub(crate) fn append(&self) -> AppendTimer<'_> {
        self.appends_waiting.add(1);
        AppendTimer {
            counters: self,
            begun: Instant::now(),
        }
    }

    /// A record is stored.
    pub(crate) fn stored(&self, record: &Record) {
        let RecordBody::Event(event) = &record.body else {
            return;
        };
        match &**event {
            Event::TurnStarted(_) => self.turns_started.add(1),
            Event::TurnEnded(ended) => self.turns_ended.add(turn_end(&ended.end), 1),
            Event::ModelEnded(ended) => {
                self.model_calls.add(model_end(&ended.end), 1);
                if let ModelEnd::Broke { .. }
                | ModelEnd::Rerouted { .. }
                | ModelEnd::Overflowed { .. } = ended.end
                {
                    self.model_retries.add(1);
                }
                if let Some(usage) = &ended.usage {
                    self.used(usage);
                }
            }
            _ => {}
        }
    }

    fn used(&self, usage: &Usage) {
        for (kind, tokens) in token_kinds(usage) {
            self.tokens.add(kind, tokens);
        }
    }
}

impl AppendTimer<'_> {
    /// It ended.
    pub(crate) fn ended<T>(self, class: Class, result: &Result<T, AppendError>) {
        let took = self.begun.elapsed();
        match (result, class) {
            (Err(error), _) => self.counters.appends_failed.add(append_error(error), 1),
            (Ok(_), Class::Power) => self.counters.appends_power.add(took),
            (Ok(_), Class::Process) => self.counters.appends_process.add(took),
        }
    }
}

impl Drop for AppendTimer<'_> {
    fn drop(&mut self) {
        self.counters.appends_waiting.take(1);
    }
}

/// Tokens by their kinds.
pub fn token_kinds(usage: &Usage) -> [(&'static str, u64); 4] {
    [
        ("input", usage.input),
        ("cached_input", usage.cached),
        ("output", usage.output),
        ("reasoning_output", usage.reasoning),
    ]
}

fn turn_end(end: &TurnEnd) -> &'static str {
    match end {
        TurnEnd::Completed {} => "completed",
        TurnEnd::Interrupted(_) => "interrupted",
        TurnEnd::Failed(failure) => failure_kind(&failure.kind),
    }
}

fn model_end(end: &ModelEnd) -> &'static str {
    match end {
        ModelEnd::Done {} => "done",
        ModelEnd::Broke { error, .. }
        | ModelEnd::Rerouted { error, .. }
        | ModelEnd::Overflowed { error }
        | ModelEnd::Failed { error } => failure_kind(&error.kind),
        ModelEnd::Cancelled {} => "cancelled",
        ModelEnd::OwnerLost {} => "owner_lost",
    }
}

fn failure_kind(kind: &FailureKind) -> &'static str {
    match kind {
        FailureKind::ContextFull => "context_full",
        FailureKind::BudgetSpent => "budget_spent",
        FailureKind::UsageLimit => "usage_limit",
        FailureKind::RateLimit => "rate_limit",
        FailureKind::Overloaded => "overloaded",
        FailureKind::ModelNotFound => "model_not_found",
        FailureKind::VendorFailed => "vendor_failed",
        FailureKind::Unauthorized => "unauthorized",
        FailureKind::BadRequest => "bad_request",
        FailureKind::Policy => "policy",
        FailureKind::Connection { .. } => "connection",
        FailureKind::Stream { .. } => "stream",
        FailureKind::Untrusted => "untrusted",
        FailureKind::Unreadable => "unreadable",
        FailureKind::CutShort => "cut_short",
        FailureKind::TooManyAttempts => "too_many_attempts",
        FailureKind::Sandbox => "sandbox",
        FailureKind::RecoveryLimit => "recovery_limit",
        FailureKind::StorageFull => "storage_full",
        FailureKind::Internal => "internal",
        FailureKind::Other => "other",
    }
}

fn append_error(error: &AppendError) -> &'static str {
    match error {
        AppendError::Conflict => "conflict",
        AppendError::Unavailable(_) => "unavailable",
        AppendError::Full(_) => "full",
        AppendError::ReadOnly(_) => "read_only",
        AppendError::NoBlob(_) => "no_blob",
        AppendError::Newer(_) => "newer",
        AppendError::Unknown(_) => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_stays_at_the_most_there_is() {
        let counts = LabeledCounter::default();
        counts.add("input", 1);
        counts.add("input", u64::MAX);
        assert_eq!(counts.all()["input"], u64::MAX);
    }

    #[test]
    fn tokens_are_counted_for_whoever_answered() {
        let shares = ProviderTokens::default();
        let usage = Usage {
            input: 3,
            output: 1,
            ..Usage::default()
        };
        for provider in [Some("a"), Some("b"), Some("a"), None, Some("no \"name\"")] {
            shares.add(provider, &usage);
        }
        let found = shares.all();
        let found: Vec<_> = found
            .iter()
            .map(|(it, usage)| (&**it, usage.total()))
            .collect();
        assert_eq!(found, [("a", 8), ("b", 4), ("other", 8)]);
        for number in 0..2 * PROVIDERS_MAX {
            shares.add(Some(&format!("p{number}")), &usage);
        }
        assert_eq!(shares.all().len(), PROVIDERS_MAX);
    }
}
