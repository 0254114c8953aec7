//! Counters since the start, for the operator.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use raddle_core::ports::AppendError;
use raddle_core::{Class, Event, FailureKind, ModelEnd, Record, RecordBody, TurnEnd, Usage};

/// Maximum number of providers with a separate counter.
const PROVIDERS_MAX: usize = 64;

/// Label that counts all other providers.
const OTHER: &str = "other";

/// The counters of all threads of a process.
#[derive(Debug, Default)]
pub struct Counters {
    /// Number of turns started.
    pub turns_started: CounterCell,
    /// Turns ended, by outcome.
    pub turns_ended: LabeledCounter,
    /// Model calls ended, by outcome.
    pub model_calls: LabeledCounter,
    /// Model calls that are retried.
    pub model_retries: CounterCell,
    /// Tokens of the model calls, by kind.
    pub tokens: LabeledCounter,
    /// Tokens of the model calls, by provider.
    pub provider_tokens: ProviderTokens,
    /// Appends that must survive a power loss.
    pub appends_power: Timings,
    /// Appends that must survive a crash of the process.
    pub appends_process: Timings,
    /// Failed appends, by reason.
    pub appends_failed: LabeledCounter,
    /// How often a slow subscriber was switched to catch-up.
    pub fell_behind: CounterCell,
    /// Appends in progress, including those that wait for the journal.
    pub appends_waiting: CounterCell,
}

/// A counter that any thread may increase.
#[derive(Debug, Default)]
pub struct CounterCell(AtomicU64);

/// One counter per label.
#[derive(Debug, Default)]
pub struct LabeledCounter(Mutex<BTreeMap<&'static str, u64>>);

/// Token usage per provider.
#[derive(Debug, Default)]
pub struct ProviderTokens(Mutex<BTreeMap<String, Usage>>);

/// Number and total duration of operations.
#[derive(Debug, Default)]
pub struct Timings {
    count: CounterCell,
    nanoseconds: CounterCell,
}

impl CounterCell {
    /// Increases the counter by `more`.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    fn take(&self, less: u64) {
        self.0.fetch_sub(less, Ordering::Relaxed);
    }

    /// Returns the current value of the counter.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl LabeledCounter {
    /// Increases one label. The labels are constants in the code, so the map stays small.
    pub fn add(&self, name: &'static str, more: u64) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(name).or_default();
        *count = count.saturating_add(more);
    }

    /// All labels with their counts.
    pub fn all(&self) -> BTreeMap<&'static str, u64> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl ProviderTokens {
    /// Adds usage to a provider. The names are keys of the configuration. Names that are not plain,
    /// and names beyond the limit, are counted as `other`.
    pub(crate) fn add(&self, provider: Option<&str>, usage: &Usage) {
        let is_plain = |it: &&str| {
            let mut letters = it.chars();
            it.len() <= 64 && letters.all(|it| it.is_ascii_alphanumeric() || "-_.".contains(it))
        };
        let name = provider.filter(is_plain).unwrap_or(OTHER);
        let mut shares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has_capacity = shares.len() < PROVIDERS_MAX || shares.contains_key(name);
        let name = if has_capacity { name } else { OTHER };
        let share = shares.entry(name.to_owned()).or_default();
        *share = share.plus(usage);
    }

    /// All providers with their usage.
    pub fn all(&self) -> BTreeMap<String, Usage> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Timings {
    fn add(&self, elapsed: Duration) {
        self.count.add(1);
        let nanoseconds = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.add(nanoseconds);
    }

    /// Returns the number of operations so far.
    pub fn count(&self) -> u64 {
        self.count.get()
    }

    /// Returns the total duration of these operations.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.get())
    }
}

pub(crate) struct AppendTimer<'a> {
    counters: &'a Counters,
    started: Instant,
}

impl Counters {
    /// Starts measuring an append.
    pub(crate) fn append(&self) -> AppendTimer<'_> {
        self.appends_waiting.add(1);
        AppendTimer {
            counters: self,
            started: Instant::now(),
        }
    }

    /// Counts a stored record.
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
                    self.count_tokens(usage);
                }
            }
            Event::ModelUsed(used) => self.count_tokens(&used.usage),
            _ => {}
        }
    }

    fn count_tokens(&self, usage: &Usage) {
        for (kind, tokens) in token_kinds(usage) {
            self.tokens.add(kind, tokens);
        }
    }
}

impl AppendTimer<'_> {
    /// Counts the result of the append.
    pub(crate) fn ended<T>(self, class: Class, result: &Result<T, AppendError>) {
        let elapsed = self.started.elapsed();
        match (result, class) {
            (Err(error), _) => self.counters.appends_failed.add(append_error(error), 1),
            (Ok(_), Class::Power) => self.counters.appends_power.add(elapsed),
            (Ok(_), Class::Process) => self.counters.appends_process.add(elapsed),
        }
    }
}

impl Drop for AppendTimer<'_> {
    fn drop(&mut self) {
        self.counters.appends_waiting.take(1);
    }
}

/// Splits usage into token counts by kind.
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

/// Names a kind of failure, as the metrics and the log do.
pub(crate) fn failure_kind(kind: &FailureKind) -> &'static str {
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
    fn a_counter_saturates() {
        let counts = LabeledCounter::default();
        counts.add("input", 1);
        counts.add("input", u64::MAX);
        assert_eq!(counts.all()["input"], u64::MAX);
    }

    #[test]
    fn tokens_are_counted_per_provider() {
        let shares = ProviderTokens::default();
        let usage = Usage {
            input: 3,
            output: 1,
            ..Usage::default()
        };
        for provider in [Some("a"), Some("b"), Some("a"), None, Some("no \"name\"")] {
            shares.add(provider, &usage);
        }
        let usage_by_provider = shares.all();
        let totals: Vec<_> = usage_by_provider
            .iter()
            .map(|(it, usage)| (&**it, usage.total()))
            .collect();
        assert_eq!(totals, [("a", 8), ("b", 4), ("other", 8)]);
        for number in 0..2 * PROVIDERS_MAX {
            shares.add(Some(&format!("p{number}")), &usage);
        }
        assert_eq!(shares.all().len(), PROVIDERS_MAX);
    }
}
