//! The budgets of turns and threads in the configuration.

use std::collections::BTreeMap;

use raddle_core::{Measure, Scope, SpendLimits, nano_usd};
use serde_json::Value;

use crate::effective::EffectiveConfig;
use crate::setting_error::SettingError;

/// Returns the limits of each turn, or of the thread.
pub fn limits(config: &EffectiveConfig<'_>, scope: Scope) -> Result<SpendLimits, SettingError> {
    read(config.table(), scope).map_err(|BudgetError { key, what }| match key {
        Some(key) => config.refused(what, &["budget", scope.key(), key.as_str()]),
        None => config.refused(what, &["budget", scope.key()]),
    })
}

/// Returns the limits, if a request's own `config` sets any.
pub fn limits_of_request(
    request_config: Option<&BTreeMap<String, Value>>,
    config: &EffectiveConfig<'_>,
    scope: Scope,
) -> Result<Option<SpendLimits>, SettingError> {
    let path = format!("budget.{}", scope.key());
    let names = |(key, value): (&String, &Value)| {
        let is_all = key == "budget" && value.get(scope.key()).is_some();
        is_all || *key == path || key.starts_with(&format!("{path}."))
    };
    let is_named = request_config.into_iter().flatten().any(names);
    is_named.then(|| limits(config, scope)).transpose()
}

/// Parses `[budget.turn]` or `[budget.thread]` of a file, or returns what is wrong with it.
pub fn of_table(table: &toml::Table, scope: Scope) -> Result<SpendLimits, String> {
    read(table, scope).map_err(|it| it.what)
}

/// An error in such a table.
struct BudgetError {
    /// The faulty key, if it is one key.
    key: Option<String>,
    what: String,
}

fn read(table: &toml::Table, scope: Scope) -> Result<SpendLimits, BudgetError> {
    let path = format!("budget.{}", scope.key());
    let Some(value) = table.get("budget").and_then(|it| it.get(scope.key())) else {
        return Ok(SpendLimits::default());
    };
    let table = value.as_table().ok_or_else(|| BudgetError {
        key: None,
        what: format!("`{path}` must be a table"),
    })?;
    let mut limits = SpendLimits::default();
    for (key, value) in table {
        let invalid = |what| BudgetError {
            key: Some(key.clone()),
            what,
        };
        let measure = Measure::ALL.into_iter().find(|it| it.key() == key);
        let Some(measure) = measure else {
            let keys = Measure::ALL.map(Measure::key).join(", ");
            return Err(invalid(format!(
                "`{path}` has no `{key}`; write one of {keys}"
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
            limit.ok_or_else(|| invalid(format!("`{path}.{key}` must be {kind}, not below 0")))?;
        let slot = match measure {
            Measure::Tokens => &mut limits.tokens,
            Measure::Usd => &mut limits.nano_usd,
            Measure::Seconds => &mut limits.seconds,
            Measure::ToolCalls => &mut limits.tool_calls,
        };
        *slot = Some(limit);
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_from_a_table() {
        let none = SpendLimits::default();
        for (text, expected) in [
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
            let limits = of_table(&table, Scope::Turn);
            assert_eq!(limits, expected.map_err(str::to_owned), "{text}");
        }
    }
}
