//! Budgets as they are on the wire.

use raddle_protocol as wire;

use crate::{Measure, Scope, Settings, SpendLimits, Spending};

const NANO: f64 = 1e9;

/// Converts a budget and the amount spent of it.
#[expect(
    clippy::cast_precision_loss,
    reason = "JSON's numbers are not more precise"
)]
pub(super) fn spending(it: &Spending) -> wire::BudgetSpending {
    let shown = |amount: u64| match it.measure {
        Measure::Tokens | Measure::ToolCalls => amount as f64,
        Measure::Usd => amount as f64 / NANO,
        Measure::Seconds => amount as f64 / 1000.0,
    };
    wire::BudgetSpending {
        scope: match it.scope {
            Scope::Turn => wire::BudgetScope::Turn,
            Scope::Thread => wire::BudgetScope::Thread,
        },
        kind: match it.measure {
            Measure::Tokens => wire::BudgetKind::Tokens,
            Measure::Usd => wire::BudgetKind::Usd,
            Measure::Seconds => wire::BudgetKind::Seconds,
            Measure::ToolCalls => wire::BudgetKind::ToolCalls,
        },
        spent: it.spent.map(shown),
        limit: shown(it.limit),
    }
}

/// Converts billionths of a dollar to dollars.
#[expect(
    clippy::cast_precision_loss,
    reason = "JSON's numbers are not more precise"
)]
pub(super) fn usd(nano_usd: u64) -> f64 {
    nano_usd as f64 / NANO
}

/// Converts all limits of the settings; `None` if they have none.
pub(super) fn limits(settings: &Settings) -> Option<wire::Budget> {
    let wire_limits = |it: &SpendLimits| {
        (!it.is_empty()).then(|| wire::BudgetLimits {
            tokens: it.tokens,
            usd: it.nano_usd.map(usd),
            seconds: it.seconds,
            tool_calls: it.tool_calls,
        })
    };
    let budget = wire::Budget {
        turn: wire_limits(&settings.turn_budget),
        thread: wire_limits(&settings.thread_budget),
    };
    (budget != wire::Budget::default()).then_some(budget)
}

impl From<&wire::BudgetLimits> for SpendLimits {
    fn from(it: &wire::BudgetLimits) -> Self {
        Self {
            tokens: it.tokens,
            nano_usd: it.usd.map(nano_usd),
            seconds: it.seconds,
            tool_calls: it.tool_calls,
        }
    }
}

/// Converts dollars to billionths of a dollar. A negative amount becomes zero.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float becomes the nearest whole number there is"
)]
pub fn nano_usd(usd: f64) -> u64 {
    (usd * NANO).round() as u64
}
