//! What the configuration lets turns and threads use.

use std::collections::BTreeMap;

use raddle_core::{Measure, Scope, SpendLimits, nano_usd};
use serde_json::Value;

use crate::services::config::EffectiveConfig;
use crate::wire_error::WireError;

/// What it lets each turn, or the thread, use.
pub(super) fn limits(config: &EffectiveConfig<'_>, scope: Scope) -> Result<SpendLimits, WireError> {
    read(config.table(), scope).map_err(|BudgetError { key, what }| match key {
        Some(key) => config.refused(what, &["budget", scope.key(), key.as_str()]),
        None => config.refused(what, &["budget", scope.key()]),
    })
}

/// The same, if a request's own `config` says something of it.
pub(super) fn named(
    said: Option<&BTreeMap<String, Value>>,
    config: &EffectiveConfig<'_>,
    scope: Scope,
) -> Result<Option<SpendLimits>, WireError> {
    let path = format!("budget.{}", scope.key());
    let names = |(key, value): (&String, &Value)| {
        let is_all = key == "budget" && value.get(scope.key()).is_some();
        is_all || *key == path || key.starts_with(&format!("{path}."))
    };
    let is_named = said.into_iter().flatten().any(names);
    is_named.then(|| limits(config, scope)).transpose()
}

/// What `[budget.turn]` or `[budget.thread]` of a file says, or what is wrong with it.
pub fn of_table(table: &toml::Table, scope: Scope) -> Result<SpendLimits, String> {
    read(table, scope).map_err(|it| it.what)
}

/// What is wrong with such a table.
struct BudgetError {
    /// The key in it, if it is one.
    key: Option<String>,
    what: String,
}

fn read(table: &toml::Table, scope: Scope) -> Result<SpendLimits, BudgetError> {
    let place = format!("budget.{}", scope.key());
    let Some(value) = table.get("budget").and_then(|it| it.get(scope.key())) else {
        return Ok(SpendLimits::default());
    };
    let table = value.as_table().ok_or_else(|| BudgetError {
        key: None,
        what: format!("`{place}` must be a table"),
    })?;
    let mut limits = SpendLimits::default();
    for (key, value) in table {
        let wrong = |what| BudgetError {
            key: Some(key.clone()),
            what,
        };
        let measure = Measure::ALL.into_iter().find(|it| it.key() == key);
        let Some(measure) = measure else {
            let keys = Measure::ALL.map(Measure::key).join(", ");
            return Err(wrong(format!(
                "`{place}` has no `{key}`; write one of {keys}"
            )));
        };
        let whole = value.as_integer().and_then(|it| u64::try_from(it).ok());
        let money = value.as_float().filter(|it| it.is_finite() && *it >= 0.0);
        let limit = match measure {
            Measure::Usd => money
                .map(nano_usd)
                .or_else(|| Some(whole?.saturating_mul(1_000_000_000))),
            Measure::Tokens | Measure::Seconds | Measure::ToolCalls => whole,
        };
        let kind = match measure {
            Measure::Usd => "a number of dollars",
            Measure::Tokens | Measure::Seconds | Measure::ToolCalls => "a whole number",
        };
        let limit =
            limit.ok_or_else(|| wrong(format!("`{place}.{key}` must be {kind}, not below 0")))?;
        let place = match measure {
            Measure::Tokens => &mut limits.tokens,
            Measure::Usd => &mut limits.nano_usd,
            Measure::Seconds => &mut limits.seconds,
            Measure::ToolCalls => &mut limits.tool_calls,
        };
        *place = Some(limit);
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_says_what_may_be_used() {
        let none = SpendLimits::default();
        for (text, wanted) in [
            ("", Ok(none)),
            ("[budget.thread]\ntokens = 1", Ok(none)),
            (
                "[budget.turn]\ntokens = 5\nusd = 0.25\nseconds = 60\ntool_calls = 0",
                Ok(SpendLimits {
                    tokens: Some(5),
                    nano_usd: Some(250_000_000),
                    seconds: Some(60),
                    tool_calls: Some(0),
                }),
            ),
            (
                "[budget.turn]\nusd = 2",
                Ok(SpendLimits {
                    nano_usd: Some(2_000_000_000),
                    ..none
                }),
            ),
            ("budget.turn = 5", Err("`budget.turn` must be a table")),
            (
                "budget.turn.tokens = -1",
                Err("`budget.turn.tokens` must be a whole number, not below 0"),
            ),
            (
                "budget.turn.usd = '5'",
                Err("`budget.turn.usd` must be a number of dollars, not below 0"),
            ),
            (
                "budget.turn.euros = 5",
                Err("`budget.turn` has no `euros`; write one of tokens, usd, seconds, tool_calls"),
            ),
        ] {
            let table: toml::Table = text.parse().expect("TOML");
            let found = of_table(&table, Scope::Turn);
            assert_eq!(found, wanted.map_err(str::to_owned), "{text}");
        }
    }
}
