//! Maps a failed call to its end for the agent: retry at a time, or fail.

use std::error::Error;
use std::time::Duration;

use raddle_config::Provider;
use raddle_config::clock::now;
use raddle_core::{Failure, FailureKind, ModelEnd, Timestamp};
use raddle_model::{CallError, VendorFault, retry};

use super::credentials::CredentialError;

/// Default numbers of retries: for calls without a response, and for answers that broke off. As in
/// Codex.
const REQUEST_RETRIES: u32 = 4;
const STREAM_RETRIES: u32 = 5;

/// The reason why a call could not be made, or broke off.
#[derive(Debug)]
pub(crate) enum CallFailure {
    /// The configuration does not allow it.
    NotConfigured(String),
    /// There is no key for it.
    NoKey(String),
    /// The key has expired, and its issuer cannot renew it now.
    NotRenewed(CallError),
    /// The vendor or the connection to it failed.
    Call(CallError),
}

impl std::fmt::Display for CallFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotConfigured(what) | Self::NoKey(what) => f.write_str(what),
            Self::NotRenewed(error) => write!(f, "cannot renew the token: {error}"),
            Self::Call(error) => error.fmt(f),
        }
    }
}

impl From<CallError> for CallFailure {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl From<CredentialError> for CallFailure {
    fn from(error: CredentialError) -> Self {
        Self::NoKey(full_text(&error))
    }
}

/// Returns the text of an error and its sources.
pub(crate) fn full_text(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

/// The number of attempts so far, and their limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempts {
    attempt: u32,
    request_retries: u32,
    stream_retries: u32,
}

impl Attempts {
    /// The attempt, counted from 1, with the default limits.
    pub(crate) fn of(attempt: u32) -> Self {
        Self {
            attempt,
            request_retries: REQUEST_RETRIES,
            stream_retries: STREAM_RETRIES,
        }
    }

    /// Applies the provider's own limits.
    pub(crate) fn limit(&mut self, provider: &Provider) {
        self.request_retries = provider.request_max_retries.unwrap_or(REQUEST_RETRIES);
        self.stream_retries = provider.stream_max_retries.unwrap_or(STREAM_RETRIES);
    }

    /// Returns the end of the call: a retry or a failure.
    pub(crate) fn ended(&self, failed: &CallFailure) -> ModelEnd {
        let for_good = |kind, what: &String| ModelEnd::Failed {
            error: Failure::new(kind, what.clone()),
        };
        let error = match failed {
            CallFailure::NotConfigured(what) => return for_good(FailureKind::BadRequest, what),
            CallFailure::NoKey(what) => return for_good(FailureKind::Unauthorized, what),
            CallFailure::NotRenewed(error) | CallFailure::Call(error) => error,
        };
        let mut failure = Failure::new(kind(error), failed.to_string());
        failure.retry_at = error.retry_after().map(|wait| later(now(), wait));
        let may_pass = failure.kind.class().is_retryable();
        let retries = match error.is_before_answer() {
            true => self.request_retries,
            false => self.stream_retries,
        };
        if may_pass && self.attempt <= retries {
            let wait = retry::wait(self.attempt, error.retry_after());
            return ModelEnd::Broke {
                error: failure,
                retry_at: later(now(), wait),
            };
        }
        if may_pass && self.attempt > 1 {
            failure.message = format!("gave up after {} attempts: {failed}", self.attempt);
        }
        ModelEnd::Failed { error: failure }
    }
}

fn later(Timestamp(now): Timestamp, wait: Duration) -> Timestamp {
    let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
    Timestamp(now.saturating_add(wait))
}

fn kind(error: &CallError) -> FailureKind {
    match error {
        CallError::Connect { .. } => FailureKind::Connection { status: None },
        CallError::Untrusted { .. } => FailureKind::Untrusted,
        CallError::BrokeOff(_) | CallError::Silent { .. } => FailureKind::Stream { status: None },
        CallError::Malformed(_) | CallError::TooLong { .. } => FailureKind::Unreadable,
        CallError::Vendor(error) => match error.fault {
            VendorFault::RateLimit => FailureKind::RateLimit,
            VendorFault::Quota => FailureKind::UsageLimit,
            VendorFault::Overloaded => FailureKind::Overloaded,
            VendorFault::Internal => FailureKind::VendorFailed,
            VendorFault::Unauthorized => FailureKind::Unauthorized,
            VendorFault::NotFound => FailureKind::ModelNotFound,
            VendorFault::ContextFull => FailureKind::ContextFull,
            VendorFault::BadRequest => FailureKind::BadRequest,
            VendorFault::Policy => FailureKind::Policy,
            VendorFault::CutShort => FailureKind::CutShort,
            VendorFault::Other => FailureKind::Other,
        },
    }
}

#[cfg(test)]
mod tests {
    use raddle_model::VendorError;

    use super::*;

    fn vendor(fault: VendorFault, status: Option<u16>, retry_after: Option<u64>) -> CallError {
        CallError::Vendor(Box::new(VendorError {
            fault,
            status,
            message: "no".to_owned(),
            retry_after: retry_after.map(Duration::from_secs),
        }))
    }

    /// The wait before a retry in milliseconds; `None` without a retry.
    fn waits(attempt: u32, error: CallError) -> Option<i64> {
        let mut tries = Attempts::of(attempt);
        tries.limit(&Provider {
            request_max_retries: Some(2),
            ..Provider::default()
        });
        let Timestamp(before) = now();
        match tries.ended(&CallFailure::Call(error)) {
            ModelEnd::Broke { retry_at, .. } => Some(retry_at.0 - before),
            _ => None,
        }
    }

    #[test]
    fn only_transient_failures_are_retried_a_limited_number_of_times() {
        let broken = || CallError::BrokeOff("cut".to_owned());
        let busy = |wait| vendor(VendorFault::Overloaded, Some(529), wait);
        for (attempt, error, expected) in [
            (1, broken(), Some(200)),
            (5, broken(), Some(3200)),
            (6, broken(), None),
            (1, busy(None), Some(200)),
            (2, busy(Some(9)), Some(9000)),
            (3, busy(None), None),
            (1, vendor(VendorFault::Quota, Some(429), Some(9)), None),
            (1, vendor(VendorFault::ContextFull, None, None), None),
            (1, CallError::Malformed("x".to_owned()), None),
        ] {
            let actual = waits(attempt, error.clone());
            let fits = match (actual, expected) {
                // A fifth for jitter, and some for the clock.
                (Some(actual), Some(least)) => (least..=least + least / 5 + 1000).contains(&actual),
                (actual, expected) => actual == expected,
            };
            assert!(fits, "{attempt} {error:?}: {actual:?}, not {expected:?}");
        }
    }

    #[test]
    fn the_last_failure_names_the_number_of_attempts() {
        let error = CallFailure::Call(CallError::BrokeOff("cut".to_owned()));
        let ModelEnd::Failed { error } = Attempts::of(6).ended(&error) else {
            panic!("it goes on");
        };
        assert_eq!(
            error.message,
            "gave up after 6 attempts: the model's answer broke off: cut"
        );
        assert_eq!(error.kind, FailureKind::Stream { status: None });
    }
}
