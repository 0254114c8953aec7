//! Budgets, in the wire's words.

use raddle_protocol as wire;

use crate::{Measure, Scope, Settings, SpendLimits, Spending};

const NANO: f64 = 1e9;

/// A budget, and what is spent of it.
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

/// Billionths of a dollar as dollars.
#[expect(
    clippy::cast_precision_loss,
    reason = "JSON's numbers are not more precise"
)]
pub(super) fn usd(nano_usd: u64) -> f64 {
    nano_usd as f64 / NANO
}

/// All limits that settings have; nothing if they have none.
pub(super) fn limits(settings: &Settings) -> Option<wire::Budget> {
    let said = |it: &SpendLimits| {
        (!it.is_empty()).then(|| wire::BudgetLimits {
            tokens: it.tokens,
            usd: it.nano_usd.map(usd),
            seconds: it.seconds,
            tool_calls: it.tool_calls,
        })
    };
    let budget = wire::Budget {
        turn: said(&settings.turn_budget),
        thread: said(&settings.thread_budget),
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

/// Dollars as billionths of them. What is below nothing is nothing.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float becomes the nearest whole number there is"
)]
pub fn nano_usd(usd: f64) -> u64 {
    (usd * NANO).round() as u64
}
