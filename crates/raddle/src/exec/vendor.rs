//! The key and the address that the stock SDK gives: `CODEX_API_KEY`, and `openai_base_url` as a setting.
//!
//! They are about the provider `openai`, which is also asked where the configuration names no other.

use raddle_server::Override;

/// The variable with the SDK's key.
const KEY: &str = "CODEX_API_KEY";

/// The setting with the SDK's address.
pub(super) const ADDRESS: &str = "openai_base_url";

pub(super) const PROVIDER: &str = "openai";

/// Whether there is a key or an address for it.
pub(super) fn is_given(settings: &[Override]) -> bool {
    has_key() || settings.iter().any(is_address)
}

fn has_key() -> bool {
    std::env::var_os(KEY).is_some_and(|it| !it.is_empty())
}

fn is_address(setting: &Override) -> bool {
    matches!(setting.path(), [one] if one == ADDRESS)
}

/// The settings as our server knows them. What is said outright goes before what the SDK means.
pub(super) fn normalize(settings: &[Override]) -> Vec<Override> {
    read(settings, has_key())
}

fn read(settings: &[Override], has_key: bool) -> Vec<Override> {
    let own = |key: &str, value: &str| {
        let value = serde_json::Value::from(value);
        format!("model_providers.{PROVIDER}.{key}={value}").parse()
    };
    let mut meant = Vec::new();
    let address = settings.iter().rev().find(|it| is_address(it));
    if let Some(address) = address
        .map(Override::to_json)
        .as_ref()
        .and_then(|it| it.as_str())
    {
        meant.extend([own("base_url", address), own("wire_api", "responses")]);
    }
    if has_key {
        meant.push(own("env_key", KEY));
    }
    let meant = meant.into_iter().flatten();
    let rest = settings.iter().filter(|it| !is_address(it)).cloned();
    meant.chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_sdk_means() {
        let section = "model_providers.openai";
        for (said, has_key, meant) in [
            (&["model=x"][..], false, vec!["model=\"x\"".to_owned()]),
            (
                &["openai_base_url=\"http://h/v1\"", "model=x"],
                false,
                vec![
                    format!("{section}.base_url=\"http://h/v1\""),
                    format!("{section}.wire_api=\"responses\""),
                    "model=\"x\"".to_owned(),
                ],
            ),
            (
                &["model_providers.openai.env_key=MINE"],
                true,
                vec![
                    format!("{section}.env_key=\"CODEX_API_KEY\""),
                    format!("{section}.env_key=\"MINE\""),
                ],
            ),
        ] {
            let said: Vec<Override> = said.iter().map(|it| it.parse().expect(it)).collect();
            let found: Vec<String> = read(&said, has_key)
                .iter()
                .map(ToString::to_string)
                .collect();
            assert_eq!(found, meant, "{said:?}");
        }
    }
}
