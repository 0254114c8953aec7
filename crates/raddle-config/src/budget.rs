//! The budgets of turns and threads in the configuration.

use std::collections::BTreeMap;

use raddle_core::{Measure, Scope, SpendLimits, nano_usd};
use serde_json::Value;

use crate::effective::EffectiveConfig;
use crate::setting_error::SettingError;

/// Returns the limits of each turn, or of the thread.
pub fn limits(config: &EffectiveConfig<'_>, scope: Scope) -> Result<SpendLimits, SettingError> {
    of_table(config.table(), scope).map_err(|BudgetError { path, what }| {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        config.refused(what, &path)
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

/// An error in `[budget]`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct BudgetError {
    /// The path of the faulty key.
    path: Vec<String>,
    what: String,
}

impl BudgetError {
    fn new(path: &[&str], what: String) -> Self {
        let path = path.iter().map(|it| (*it).to_owned()).collect();
        Self { path, what }
    }
}

/// The table of budgets.
const TABLE: &str = "budget";

/// Parses `[budget.turn]` or `[budget.thread]` of a file, or says what is wrong with it.
pub fn of_table(table: &toml::Table, scope: Scope) -> Result<SpendLimits, BudgetError> {
    let scope_key = scope.key();
    let path = format!("{TABLE}.{scope_key}");
    let Some(budgets) = table.get(TABLE) else {
        return Ok(SpendLimits::default());
    };
    let budgets = budgets.as_table().ok_or_else(|| {
        let what = format!("`{TABLE}` must be a table with the tables `turn` and `thread`");
        BudgetError::new(&[TABLE], what)
    })?;
    let scopes = [Scope::Turn, Scope::Thread].map(Scope::key);
    if let Some(key) = budgets.keys().find(|it| !scopes.contains(&it.as_str())) {
        let what = format!(
            "`{TABLE}` has no `{key}`; write one of {}",
            scopes.join(", ")
        );
        return Err(BudgetError::new(&[TABLE, key.as_str()], what));
    }
    let Some(value) = budgets.get(scope_key) else {
        return Ok(SpendLimits::default());
    };
    let table = value.as_table().ok_or_else(|| {
        BudgetError::new(&[TABLE, scope_key], format!("`{path}` must be a table"))
    })?;
    let mut limits = SpendLimits::default();
    for (key, value) in table {
        let invalid = |what| BudgetError::new(&[TABLE, scope_key, key.as_str()], what);
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
            (
                "budget = 5",
                Err("`budget` must be a table with the tables `turn` and `thread`"),
            ),
            (
                "budget.turns.tokens = 5",
                Err("`budget` has no `turns`; write one of turn, thread"),
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
            let limits = of_table(&table, Scope::Turn).map_err(|error| error.to_string());
            assert_eq!(limits, expected.map_err(str::to_owned), "{text}");
        }
    }
}
