//! Budgets of a turn and of a thread.

use serde::{Deserialize, Serialize};

/// Limits of a budget. An absent limit is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpendLimits {
    /// Tokens of model calls, input and output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Cost of these tokens, in billionths of a dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nano_usd: Option<u64>,
    /// Time while turns run, including waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Number of tools that are started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
}

/// Scope of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// Each turn, counted from zero.
    Turn,
    /// All turns of the thread together.
    Thread,
}

/// Quantity that a budget counts. Amounts are tokens, billionths of a dollar, milliseconds and
/// calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Measure {
    /// Tokens of model calls.
    Tokens,
    /// Money, in billionths of a dollar.
    Usd,
    /// Time of turns, in milliseconds.
    Seconds,
    /// Number of started tools.
    ToolCalls,
}

/// A budget, and the amount spent of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spending {
    /// Scope of the budget.
    pub scope: Scope,
    /// Quantity that the budget counts.
    pub measure: Measure,
    /// Amount spent; `None` if it is unknown, because the price is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<u64>,
    /// Limit of the budget.
    pub limit: u64,
}

impl SpendLimits {
    /// Whether there are no limits.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the limit of a quantity, in the unit of its amounts.
    pub fn of(&self, measure: Measure) -> Option<u64> {
        match measure {
            Measure::Tokens => self.tokens,
            Measure::Usd => self.nano_usd,
            Measure::Seconds => self.seconds.map(|it| it.saturating_mul(1000)),
            Measure::ToolCalls => self.tool_calls,
        }
    }

    /// Returns the lower of each limit.
    pub fn and(&self, other: &Self) -> Self {
        let lower = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self {
            tokens: lower(self.tokens, other.tokens),
            nano_usd: lower(self.nano_usd, other.nano_usd),
            seconds: lower(self.seconds, other.seconds),
            tool_calls: lower(self.tool_calls, other.tool_calls),
        }
    }
}

impl Measure {
    /// Every measure, in declaration order.
    pub const ALL: [Self; 4] = [Self::Tokens, Self::Usd, Self::Seconds, Self::ToolCalls];

    /// Key in the configuration.
    pub fn key(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Usd => "usd",
            Self::Seconds => "seconds",
            Self::ToolCalls => "tool_calls",
        }
    }

    /// Formats an amount for the user.
    pub fn shown(self, amount: u64) -> String {
        match self {
            Self::Tokens => counted(amount, "token"),
            Self::Usd => dollars(amount),
            Self::Seconds => seconds(amount),
            Self::ToolCalls => counted(amount, "tool call"),
        }
    }
}

impl Scope {
    /// Key in the configuration.
    pub fn key(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Thread => "thread",
        }
    }
}

impl Spending {
    /// Whether the budget is used up.
    pub fn is_over(&self) -> bool {
        self.spent.is_some_and(|spent| spent >= self.limit)
    }

    /// The state of the budget in a message for the user.
    pub(crate) fn state(&self) -> &'static str {
        match self.spent {
            Some(spent) if spent > self.limit => "exceeded",
            Some(spent) if spent == self.limit => "spent",
            _ => "nearly spent",
        }
    }

    /// Whether the user should be warned: a fifth of the budget or less is left.
    pub fn is_near(&self) -> bool {
        let near = u128::from(self.limit) * 4;
        self.spent.is_some_and(|it| u128::from(it) * 5 >= near)
    }
}

impl std::fmt::Display for Spending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let limit = self.measure.shown(self.limit);
        let scope = self.scope.key();
        match self.spent {
            Some(spent) => {
                let spent = self.measure.shown(spent);
                write!(f, "this {scope} has used {spent} of {limit}")
            }
            None => write!(f, "this {scope} may use {limit}"),
        }
    }
}

fn counted(amount: u64, what: &str) -> String {
    let s = if amount == 1 { "" } else { "s" };
    format!("{amount} {what}{s}")
}

/// Formats milliseconds as seconds and tenths, rounded up so that a spent budget never seems to
/// have a rest.
fn seconds(ms: u64) -> String {
    let tenths = ms.div_ceil(100);
    match (tenths / 10, tenths % 10) {
        (whole, 0) => counted(whole, "second"),
        (whole, rest) => format!("{whole}.{rest} seconds"),
    }
}

/// Formats billionths of a dollar: with cents, and with more digits where needed, down to
/// millionths.
pub fn dollars(nano_usd: u64) -> String {
    let micro = nano_usd.div_ceil(1000);
    let (whole, rest) = (micro / 1_000_000, micro % 1_000_000);
    let rest = format!("{rest:06}");
    let long = rest.trim_end_matches('0').len().max(2);
    format!("${whole}.{}", &rest[..long])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_shown_in_cents_and_what_is_below() {
        for (nano, shown) in [
            (0, "$0.00"),
            (1, "$0.000001"),
            (5_000_000, "$0.005"),
            (10_000_000, "$0.01"),
            (1_500_000_000, "$1.50"),
            (12_345_678_901, "$12.345679"),
        ] {
            assert_eq!(dollars(nano), shown, "{nano}");
        }
    }

    #[test]
    fn amounts_are_shown_with_units() {
        for (measure, amount, shown) in [
            (Measure::Tokens, 0, "0 tokens"),
            (Measure::Tokens, 1, "1 token"),
            (Measure::ToolCalls, 1, "1 tool call"),
            (Measure::ToolCalls, 2, "2 tool calls"),
            (Measure::Seconds, 0, "0 seconds"),
            (Measure::Seconds, 1, "0.1 seconds"),
            (Measure::Seconds, 901, "1 second"),
            (Measure::Seconds, 1_601, "1.7 seconds"),
            (Measure::Seconds, 2_000, "2 seconds"),
            (Measure::Seconds, 2_001, "2.1 seconds"),
        ] {
            assert_eq!(measure.shown(amount), shown, "{measure:?} {amount}");
        }
    }

    #[test]
    fn a_fifth_that_is_left_is_near() {
        for (spent, limit, near, over) in [
            (79, 100, false, false),
            (80, 100, true, false),
            (100, 100, true, true),
            (0, 0, true, true),
            (u64::MAX / 2, u64::MAX, false, false),
        ] {
            let it = Spending {
                scope: Scope::Turn,
                measure: Measure::Tokens,
                spent: Some(spent),
                limit,
            };
            assert_eq!((it.is_near(), it.is_over()), (near, over), "{it}");
        }
    }
}
