//! The menu of models: providers that can be used as they are, any other, and the mock.

use anyhow::{Context, Result, bail, ensure};
use raddle_config::presets;

use super::detection::UsableProvider;
use super::prompt::{ask, ask_until_valid, print};
use crate::home::Home;

/// How many models of a provider are named.
const NAMES_MAX: usize = 8;

/// The provider of the mock model, and its only model.
const MOCK: &str = "mock";

/// The model that the user chose.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ModelSelection {
    pub(super) provider: String,
    pub(super) model: String,
    /// Whether the location of the key is known, or no key is needed.
    pub(super) has_key: bool,
}

/// Asks for a model. Model names are suggested unless the provider is at another address than the
/// usual one.
pub(super) fn choose(home: &Home, base_url: Option<&str>) -> Result<ModelSelection> {
    let usable = UsableProvider::find(home)?;
    print("Which model? Choose a number, or write PROVIDER/MODEL.")?;
    for line in lines(&usable) {
        print(&line)?;
    }
    let entry =
        ask_until_valid(|| MenuEntry::read(&ask("   number or PROVIDER/MODEL", None)?, &usable))?;
    match entry {
        MenuEntry::Written { provider, model } => Ok(ModelSelection {
            provider,
            model,
            has_key: false,
        }),
        MenuEntry::Usable(chosen) => Ok(ModelSelection {
            provider: chosen.preset.name.to_owned(),
            model: ask_model(chosen, home, base_url)?,
            has_key: true,
        }),
        MenuEntry::Mock => Ok(ModelSelection {
            provider: MOCK.to_owned(),
            model: MOCK.to_owned(),
            has_key: true,
        }),
    }
}

/// The entries of the menu, numbered, and the names of the other providers.
fn lines(usable: &[UsableProvider]) -> Vec<String> {
    let mut entries: Vec<String> = usable.iter().map(summary).collect();
    entries.push(format!(
        "{MOCK}/{MOCK}, a scripted model inside Raddle, for first steps without a key"
    ));
    let entries = entries.iter().zip(1..);
    let mut lines: Vec<String> = entries
        .map(|(entry, number)| format!("   {number}. {entry}"))
        .collect();
    let is_listed = |name: &str| name == MOCK || usable.iter().any(|it| it.preset.name == name);
    let others = presets().iter().map(|it| it.name);
    let others: Vec<&str> = others.filter(|it| !is_listed(it)).collect();
    lines.push(format!("   Other known providers: {}.", others.join(", ")));
    lines
}

fn summary(usable: &UsableProvider) -> String {
    let name = usable.preset.name;
    match usable.preset.env_key {
        _ if usable.is_logged_in => format!("{name}, logged in"),
        Some(variable) => format!("{name}, with the key in {variable}"),
        None => format!("{name}, on this machine: {}", some_of(&usable.models)),
    }
}

/// The first names, and the number of the others.
fn some_of(names: &[String]) -> String {
    let (shown, rest) = names.split_at(names.len().min(NAMES_MAX));
    match rest.len() {
        0 => shown.join(", "),
        count => format!("{} and {count} more", shown.join(", ")),
    }
}

/// An answer to the menu.
enum MenuEntry<'a> {
    Usable(&'a UsableProvider),
    Mock,
    Written { provider: String, model: String },
}

impl<'a> MenuEntry<'a> {
    fn read(text: &str, usable: &'a [UsableProvider]) -> Result<Self> {
        let Ok(number) = text.parse::<usize>() else {
            let (provider, model) = split(text)?;
            return Ok(Self::Written { provider, model });
        };
        let at = number.checked_sub(1);
        match at.map(|it| (it, usable.get(it))) {
            Some((_, Some(chosen))) => Ok(Self::Usable(chosen)),
            Some((at, None)) if at == usable.len() => Ok(Self::Mock),
            _ => bail!(
                "{number} is not in the list; the last number is {}",
                usable.len() + 1
            ),
        }
    }
}

/// Asks for a model of the provider, and suggests the names that it lists at its usual address.
fn ask_model(chosen: &UsableProvider, home: &Home, base_url: Option<&str>) -> Result<String> {
    let provider = chosen.preset.name;
    let names = match base_url {
        Some(_) => Vec::new(),
        None => chosen.model_names(home)?,
    };
    match names.is_empty() {
        true if base_url.is_some() => print("   Write the name of a model")?,
        true => print(&format!(
            "   {provider} did not list its models; write the name of one"
        ))?,
        false => print(&format!("   Models of {provider}: {}", some_of(&names)))?,
    }
    // The first model of a vendor's list is an arbitrary one.
    let is_local = chosen.preset.env_key.is_none();
    let usual = names.first().filter(|_| is_local).map(String::as_str);
    ask_until_valid(|| {
        let model = ask("   model", usual)?;
        ensure!(!model.is_empty(), "write the name of a model of {provider}");
        // The provider may be written too.
        let prefix = format!("{provider}/");
        Ok(model.strip_prefix(&prefix).unwrap_or(&model).to_owned())
    })
}

/// Splits `PROVIDER/MODEL`.
pub(super) fn split(text: &str) -> Result<(String, String)> {
    let split = text.trim().split_once('/');
    let split = split.filter(|(provider, model)| !provider.is_empty() && !model.is_empty());
    let (provider, model) = split.with_context(|| {
        format!(
            "`{text}` must be PROVIDER/MODEL, like llamacpp/any; `raddle model list --provider NAME` lists what one has"
        )
    })?;
    Ok((provider.to_owned(), model.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usable(name: &str, models: &[&str]) -> UsableProvider {
        let preset = presets().iter().find(|it| it.name == name);
        UsableProvider {
            preset: preset.expect(name),
            is_logged_in: false,
            models: models.iter().map(|it| (*it).to_owned()).collect(),
        }
    }

    #[test]
    fn keys_and_local_models_come_first_and_the_mock_last() {
        let many: Vec<String> = (0..10).map(|it| format!("m{it}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let found = [
            usable("openai", &[]),
            usable("ollama", &["llama3.2"]),
            usable("vllm", &many),
        ];
        let logged_in = UsableProvider {
            is_logged_in: true,
            ..usable("anthropic", &[])
        };
        assert_eq!(summary(&logged_in), "anthropic, logged in");
        let lines = lines(&found);
        assert_eq!(
            lines[..4],
            [
                "   1. openai, with the key in OPENAI_API_KEY",
                "   2. ollama, on this machine: llama3.2",
                "   3. vllm, on this machine: m0, m1, m2, m3, m4, m5, m6, m7 and 2 more",
                "   4. mock/mock, a scripted model inside Raddle, for first steps without a key",
            ]
        );
        assert!(lines[4].contains("anthropic"), "{}", lines[4]);
        assert!(!lines[4].contains("openai,"), "{}", lines[4]);
    }

    #[test]
    fn an_answer_is_a_number_or_a_name() {
        let found = [usable("openai", &[])];
        assert!(matches!(
            MenuEntry::read("1", &found),
            Ok(MenuEntry::Usable(_))
        ));
        assert!(matches!(MenuEntry::read("2", &found), Ok(MenuEntry::Mock)));
        for invalid in ["0", "3", "gpt", "", "/m"] {
            assert!(MenuEntry::read(invalid, &found).is_err(), "{invalid}");
        }
        let Ok(MenuEntry::Written { provider, model }) = MenuEntry::read("vllm/a/b", &found) else {
            panic!("not a name");
        };
        assert_eq!((provider.as_str(), model.as_str()), ("vllm", "a/b"));
    }
}
