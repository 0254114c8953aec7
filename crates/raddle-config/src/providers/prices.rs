//! Prices of models: from the configuration, else from a built-in table.
//!
//! The table holds the vendors' prices at their own addresses on the day it names. It leaves out
//! prices that change with the hour, and those of brokers and self-hosted engines: such a price is
//! unknown.

use std::sync::LazyLock;

use raddle_core::{Price, Rates};

use super::presets;

/// The price table, with the day of its data.
static PRICE_TABLE: LazyLock<toml::Table> =
    LazyLock::new(|| include_str!("prices.toml").parse().unwrap_or_default());

/// Returns the price of a model's tokens, if it is known.
pub(super) fn price(config: &toml::Table, provider: &str, model: &str) -> Option<Price> {
    let configured = rows(config).find(|it| matches_model(it, provider, model));
    if let Some(configured) = configured {
        return read(configured).ok();
    }
    // A provider at another address may have other prices.
    let sections = config.get("model_providers");
    let section = sections.and_then(|it| it.get(provider));
    let is_elsewhere = section.is_some_and(|it| it.get("base_url").is_some());
    presets::named(provider).filter(|_| !is_elsewhere)?;
    let provider = match provider {
        "google" => "gemini",
        provider => provider,
    };
    let known = rows(&PRICE_TABLE).find(|it| matches_model(it, provider, model));
    read(known?).ok()
}

/// Returns what is wrong with a layer's prices, a sentence each.
pub(crate) fn problems(config: &toml::Table) -> Vec<String> {
    rows(config).filter_map(|it| read(it).err()).collect()
}

fn rows(table: &toml::Table) -> impl Iterator<Item = &toml::Table> {
    let rows = table.get("prices").and_then(toml::Value::as_array);
    rows.into_iter().flatten().filter_map(toml::Value::as_table)
}

/// Whether a row matches a model: by its name, by its name before a date, or by `*`, which is every
/// name.
fn matches_model(row: &toml::Table, provider: &str, model: &str) -> bool {
    let text = |key: &str| row.get(key).and_then(toml::Value::as_str);
    let Some(name) = text("model") else {
        return false;
    };
    let is_date = |rest: &str| {
        let digits = rest.bytes().filter(u8::is_ascii_digit).count();
        rest.starts_with('-') && digits == 8 && rest.len() <= 11
    };
    let is_dated = |name: &str| model.strip_prefix(name).is_some_and(is_date);
    // A vendor's first version, such as 4-0, is 4 with a date.
    let bare = name.strip_suffix("-0");
    let is_named = name == "*" || name == model || is_dated(name) || bare.is_some_and(is_dated);
    text("provider") == Some(provider) && is_named
}

fn read(row: &toml::Table) -> Result<Price, String> {
    let text = |key: &str| row.get(key).and_then(toml::Value::as_str);
    let (Some(provider), Some(model)) = (text("provider"), text("model")) else {
        return Err("each of `prices` must have a provider and a model".to_owned());
    };
    let context = format!("the price of {provider}/{model}");
    let long = match row.get("long") {
        None => None,
        Some(toml::Value::Table(long)) => {
            let above = long.get("above").and_then(toml::Value::as_integer);
            let above = above.and_then(|it| u64::try_from(it).ok());
            let above = above
                .ok_or_else(|| format!("{context}: `long.above` must be a number of tokens"))?;
            Some((above, rates(long, &context)?))
        }
        Some(_) => return Err(format!("{context}: `long` must be a table")),
    };
    Ok(Price {
        usual: rates(row, &context)?,
        long,
    })
}

/// Parses the rates, in dollars for a million tokens. The cache costs as much as input, unless it
/// is set.
fn rates(table: &toml::Table, context: &str) -> Result<Rates, String> {
    let rate = |key: &str| -> Result<Option<u64>, String> {
        let Some(value) = table.get(key) else {
            return Ok(None);
        };
        let whole = value.as_integer().and_then(|it| u32::try_from(it).ok());
        let dollars = value.as_float().or_else(|| whole.map(f64::from));
        let dollars = dollars.filter(|it| it.is_finite() && *it >= 0.0);
        let dollars = dollars
            .ok_or_else(|| format!("{context}: `{key}` must be dollars for a million tokens"))?;
        // Rates are in millionths of a dollar; `nano_usd` counts billionths, so the amount is
        // divided by 1000.
        Ok(Some(raddle_core::nano_usd(dollars / 1000.0)))
    };
    let needed = |key: &str| rate(key)?.ok_or_else(|| format!("{context}: `{key}` is missing"));
    let input = needed("input")?;
    Ok(Rates {
        input,
        cached: rate("cached_input")?.unwrap_or(input),
        cache_written: rate("cache_write")?.unwrap_or(input),
        output: needed("output")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat_price(input: u64, cached: u64, cache_written: u64, output: u64) -> Price {
        Price {
            usual: Rates {
                input,
                cached,
                cache_written,
                output,
            },
            long: None,
        }
    }

    #[test]
    fn the_price_table_is_complete_and_dated() {
        assert_eq!(problems(&PRICE_TABLE), Vec::<String>::new());
        assert!(rows(&PRICE_TABLE).count() > 40);
        let dated = PRICE_TABLE.get("dated").and_then(toml::Value::as_str);
        assert!(dated.is_some_and(|it| it.len() == "2026-01-01".len()));
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/budgets.md");
        let page = std::fs::read_to_string(page).expect("the page of budgets");
        assert!(page.contains(dated.unwrap_or("a day")));
    }

    #[test]
    fn a_price_is_configured_or_built_in_or_unknown() {
        let text = "[[prices]]\nprovider = 'mine'\nmodel = 'm'\ninput = 2\noutput = 10.5\n\
                   [[prices]]\nprovider = 'local'\nmodel = '*'\ninput = 0\noutput = 0\n\
                   [[prices]]\nprovider = 'openai'\nmodel = 'gpt-5'\ninput = 1\ncached_input = 0.0375\ncache_write = 2\n\
                   output = 3\n[model_providers.anthropic]\nbase_url = 'http://127.0.0.1:9'";
        let configured: toml::Table = text.parse().expect("TOML");
        let none = toml::Table::new();
        let opus = flat_price(5_000_000, 500_000, 6_250_000, 25_000_000);
        let first = flat_price(15_000_000, 1_500_000, 18_750_000, 75_000_000);
        for (config, provider, model, expected) in [
            (
                &configured,
                "mine",
                "m",
                Some(flat_price(2_000_000, 2_000_000, 2_000_000, 10_500_000)),
            ),
            (
                &configured,
                "mine",
                "m-20260101",
                Some(flat_price(2_000_000, 2_000_000, 2_000_000, 10_500_000)),
            ),
            (&configured, "mine", "m-2", None),
            (&configured, "mine", "m2", None),
            (
                &configured,
                "local",
                "whatever",
                Some(flat_price(0, 0, 0, 0)),
            ),
            (
                &configured,
                "openai",
                "gpt-5",
                Some(flat_price(1_000_000, 37_500, 2_000_000, 3_000_000)),
            ),
            (&none, "anthropic", "claude-opus-4-5", Some(opus)),
            (&none, "anthropic", "claude-opus-4-5-20251101", Some(opus)),
            (&none, "anthropic", "claude-opus-4-0", Some(first)),
            (&none, "anthropic", "claude-opus-4-20250514", Some(first)),
            (&none, "anthropic", "claude-opus-4-1-20250805", Some(first)),
            (&none, "anthropic", "claude-opus-4", None),
            (&configured, "anthropic", "claude-opus-4-5", None),
            (&none, "openrouter", "gpt-5", None),
            (&none, "nobody", "gpt-5", None),
        ] {
            assert_eq!(
                price(config, provider, model),
                expected,
                "{provider}/{model}"
            );
        }
    }

    #[test]
    fn problems_of_prices_are_reported() {
        for (text, expected) in [
            (
                "[[prices]]\nmodel = 'm'",
                "each of `prices` must have a provider and a model",
            ),
            (
                "[[prices]]\nprovider = 'p'\nmodel = 'm'\ninput = 1",
                "the price of p/m: `output` is missing",
            ),
            (
                "[[prices]]\nprovider = 'p'\nmodel = 'm'\ninput = -1\noutput = 1",
                "the price of p/m: `input` must be dollars for a million tokens",
            ),
        ] {
            let table: toml::Table = text.parse().expect("TOML");
            assert_eq!(problems(&table), [expected], "{text}");
        }
    }
}
