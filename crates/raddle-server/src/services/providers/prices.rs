//! What models cost: as the configuration says, else as a table says that Raddle brings along.
//!
//! The table holds what vendors ask at their own addresses on the day it names. A price that changes with the hour
//! is not in it, nor is what a broker or an engine of one's own would ask: what is not known is said to be.

use std::sync::LazyLock;

use raddle_core::{Price, Rates};

use super::presets;

/// The table, and the day on which it was so.
static PRICE_TABLE: LazyLock<toml::Table> =
    LazyLock::new(|| include_str!("prices.toml").parse().unwrap_or_default());

/// What a model's tokens cost, if that is known.
pub(super) fn price(config: &toml::Table, provider: &str, model: &str) -> Option<Price> {
    let own = rows(config).find(|it| is_meant(it, provider, model));
    if let Some(own) = own {
        return read(own).ok();
    }
    // Whoever is somewhere else may ask something else.
    let sections = config.get("model_providers");
    let section = sections.and_then(|it| it.get(provider));
    let is_elsewhere = section.is_some_and(|it| it.get("base_url").is_some());
    presets::named(provider).filter(|_| !is_elsewhere)?;
    let provider = match provider {
        "google" => "gemini",
        provider => provider,
    };
    let known = rows(&PRICE_TABLE).find(|it| is_meant(it, provider, model));
    read(known?).ok()
}

/// What is wrong with a layer's prices, a sentence each.
pub(crate) fn problems(config: &toml::Table) -> Vec<String> {
    rows(config).filter_map(|it| read(it).err()).collect()
}

fn rows(table: &toml::Table) -> impl Iterator<Item = &toml::Table> {
    let rows = table.get("prices").and_then(toml::Value::as_array);
    rows.into_iter().flatten().filter_map(toml::Value::as_table)
}

/// Whether a row is about a model: by its name, by its name before a date, or by `*`, which is every name.
fn is_meant(row: &toml::Table, provider: &str, model: &str) -> bool {
    let text = |key: &str| row.get(key).and_then(toml::Value::as_str);
    let Some(name) = text("model") else {
        return false;
    };
    let is_date = |rest: &str| {
        let digits = rest.bytes().filter(u8::is_ascii_digit).count();
        rest.starts_with('-') && digits == 8 && rest.len() <= 11
    };
    let is_dated = |name: &str| model.strip_prefix(name).is_some_and(is_date);
    // What a vendor calls the first of its kind, such as 4-0, is 4 with a date.
    let bare = name.strip_suffix("-0");
    let is_named = name == "*" || name == model || is_dated(name) || bare.is_some_and(is_dated);
    text("provider") == Some(provider) && is_named
}

fn read(row: &toml::Table) -> Result<Price, String> {
    let text = |key: &str| row.get(key).and_then(toml::Value::as_str);
    let (Some(provider), Some(model)) = (text("provider"), text("model")) else {
        return Err("each of `prices` must have a provider and a model".to_owned());
    };
    let place = format!("the price of {provider}/{model}");
    let long = match row.get("long") {
        None => None,
        Some(toml::Value::Table(long)) => {
            let above = long.get("above").and_then(toml::Value::as_integer);
            let above = above.and_then(|it| u64::try_from(it).ok());
            let above =
                above.ok_or_else(|| format!("{place}: `long.above` must be a number of tokens"))?;
            Some((above, rates(long, &place)?))
        }
        Some(_) => return Err(format!("{place}: `long` must be a table")),
    };
    Ok(Price {
        usual: rates(row, &place)?,
        long,
    })
}

/// Dollars for a million tokens. What the cache costs is what reading costs, unless it is said.
fn rates(table: &toml::Table, place: &str) -> Result<Rates, String> {
    let rate = |key: &str| -> Result<Option<u64>, String> {
        let Some(value) = table.get(key) else {
            return Ok(None);
        };
        let whole = value.as_integer().and_then(|it| u32::try_from(it).ok());
        let dollars = value.as_float().or_else(|| whole.map(f64::from));
        let dollars = dollars.filter(|it| it.is_finite() && *it >= 0.0);
        let dollars = dollars
            .ok_or_else(|| format!("{place}: `{key}` must be dollars for a million tokens"))?;
        // A thousand million of them are a dollar, and a million a thousandth.
        Ok(Some(raddle_core::nano_usd(dollars / 1000.0)))
    };
    let needed = |key: &str| rate(key)?.ok_or_else(|| format!("{place}: `{key}` is missing"));
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

    fn usual(input: u64, cached: u64, cache_written: u64, output: u64) -> Price {
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
    fn the_table_is_whole_and_dated() {
        assert_eq!(problems(&PRICE_TABLE), Vec::<String>::new());
        assert!(rows(&PRICE_TABLE).count() > 40);
        let dated = PRICE_TABLE.get("dated").and_then(toml::Value::as_str);
        assert!(dated.is_some_and(|it| it.len() == "2026-01-01".len()));
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/budgets.md");
        let page = std::fs::read_to_string(page).expect("the page of budgets");
        assert!(page.contains(dated.unwrap_or("a day")));
    }

    #[test]
    fn a_price_is_the_users_or_the_vendors_or_not_known() {
        let own = "[[prices]]\nprovider = 'mine'\nmodel = 'm'\ninput = 2\noutput = 10.5\n\
                   [[prices]]\nprovider = 'local'\nmodel = '*'\ninput = 0\noutput = 0\n\
                   [[prices]]\nprovider = 'openai'\nmodel = 'gpt-5'\ninput = 1\ncached_input = 0.0375\ncache_write = 2\n\
                   output = 3\n[model_providers.anthropic]\nbase_url = 'http://127.0.0.1:9'";
        let own: toml::Table = own.parse().expect("TOML");
        let none = toml::Table::new();
        let opus = usual(5_000_000, 500_000, 6_250_000, 25_000_000);
        let first = usual(15_000_000, 1_500_000, 18_750_000, 75_000_000);
        for (config, provider, model, wanted) in [
            (
                &own,
                "mine",
                "m",
                Some(usual(2_000_000, 2_000_000, 2_000_000, 10_500_000)),
            ),
            (
                &own,
                "mine",
                "m-20260101",
                Some(usual(2_000_000, 2_000_000, 2_000_000, 10_500_000)),
            ),
            (&own, "mine", "m-2", None),
            (&own, "mine", "m2", None),
            (&own, "local", "whatever", Some(usual(0, 0, 0, 0))),
            (
                &own,
                "openai",
                "gpt-5",
                Some(usual(1_000_000, 37_500, 2_000_000, 3_000_000)),
            ),
            (&none, "anthropic", "claude-opus-4-5", Some(opus)),
            (&none, "anthropic", "claude-opus-4-5-20251101", Some(opus)),
            (&none, "anthropic", "claude-opus-4-0", Some(first)),
            (&none, "anthropic", "claude-opus-4-20250514", Some(first)),
            (&none, "anthropic", "claude-opus-4-1-20250805", Some(first)),
            (&none, "anthropic", "claude-opus-4", None),
            (&own, "anthropic", "claude-opus-4-5", None),
            (&none, "openrouter", "gpt-5", None),
            (&none, "nobody", "gpt-5", None),
        ] {
            assert_eq!(price(config, provider, model), wanted, "{provider}/{model}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, wanted) in [
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
            assert_eq!(problems(&table), [wanted], "{text}");
        }
    }
}
