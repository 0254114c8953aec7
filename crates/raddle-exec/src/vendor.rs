//! The key and the address that the stock SDK passes: `CODEX_API_KEY`, and the setting
//! `openai_base_url`.
//!
//! They apply to the provider `openai`, which is also the default if the configuration names no
//! other.

use raddle_config::Override;

/// The variable with the SDK's key.
const KEY: &str = "CODEX_API_KEY";

/// The setting with the SDK's address.
pub(crate) const ADDRESS: &str = "openai_base_url";

pub(crate) const PROVIDER: &str = "openai";

/// Whether the SDK's key or address is present.
pub(crate) fn is_given(settings: &[Override]) -> bool {
    has_key() || settings.iter().any(is_address)
}

fn has_key() -> bool {
    std::env::var_os(KEY).is_some_and(|it| !it.is_empty())
}

fn is_address(setting: &Override) -> bool {
    matches!(setting.path(), [one] if one == ADDRESS)
}

/// Translates the settings for the server. Explicit settings override those of the SDK.
pub(crate) fn normalize(settings: &[Override]) -> Vec<Override> {
    read(settings, has_key())
}

fn read(settings: &[Override], has_key: bool) -> Vec<Override> {
    let own = |key: &str, value: &str| {
        let value = serde_json::Value::from(value);
        format!("model_providers.{PROVIDER}.{key}={value}").parse()
    };
    let mut translated = Vec::new();
    let address = settings.iter().rev().find(|it| is_address(it));
    if let Some(address) = address
        .map(Override::to_json)
        .as_ref()
        .and_then(|it| it.as_str())
    {
        translated.extend([own("base_url", address), own("wire_api", "responses")]);
    }
    if has_key {
        translated.push(own("env_key", KEY));
    }
    let translated = translated.into_iter().flatten();
    let rest = settings.iter().filter(|it| !is_address(it)).cloned();
    translated.chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sdk_settings_are_translated() {
        let section = "model_providers.openai";
        for (arguments, has_key, expected) in [
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
            let settings: Vec<Override> =
                arguments.iter().map(|it| it.parse().expect(it)).collect();
            let actual: Vec<String> = read(&settings, has_key)
                .iter()
                .map(ToString::to_string)
                .collect();
            assert_eq!(actual, expected, "{settings:?}");
        }
    }
}
