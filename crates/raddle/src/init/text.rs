//! The configuration file that `raddle init` writes.

use raddle_config::presets;
use toml_edit::{Key, Value};

use super::SCHEMA;
use super::answers::{InitAnswers, KeyLocation};
use crate::cli::InitApproval;

/// Returns the whole file.
pub(super) fn of(answers: &InitAnswers) -> String {
    let InitAnswers {
        provider, model, ..
    } = answers;
    let (policy, mode) = match answers.approval {
        InitApproval::Read => ("on-request", "read-only"),
        InitApproval::Workspace => ("on-request", "workspace-write"),
        InitApproval::All => ("never", "danger-full-access"),
    };
    let model = quoted(&format!("{provider}/{model}"));
    let key = match &answers.key {
        KeyLocation::Variable(name) if is_usual(answers, name) => {
            format!(
                "# Its key is in the environment variable {name}, where the server is started.\n"
            )
        }
        KeyLocation::Stored => "# Its key was stored by `raddle login`.\n".to_owned(),
        _ => String::new(),
    };
    let mut text = format!(
        "#:schema ./{SCHEMA}\n\
         # Raddle's configuration, written by `raddle init`. `raddle config list --origin` shows what counts and where it\n\
         # comes from; `raddle config set KEY VALUE` changes it here and leaves comments alone.\n\
         \n\
         # The model that threads begin with, as PROVIDER/MODEL. `raddle model list` shows what there is.\n\
         {key}\
         model = {model}\n\
         \n\
         # When the user is asked: untrusted (before every command that is not known to be harmless), on-request (when the\n\
         # agent wants to go beyond its sandbox) or never. rules.toml, beside this file, can say more.\n\
         approval_policy = {}\n\
         \n\
         # What commands may write: read-only (nothing), workspace-write (the folder that they work in) or\n\
         # danger-full-access (no sandbox at all).\n\
         sandbox_mode = {}\n",
        quoted(policy),
        quoted(mode),
    );
    text.push_str(&section(answers));
    text
}

/// Whether this is the default variable of a well-known provider. Then `env_key` is left out, so
/// that users can also sign in.
pub(super) fn is_usual(answers: &InitAnswers, variable: &str) -> bool {
    let mut presets = presets().iter();
    answers.base_url.is_none()
        && presets.any(|it| it.name == answers.provider && it.env_key == Some(variable))
}

/// The section of the provider, if one is needed.
fn section(answers: &InitAnswers) -> String {
    let mut lines = Vec::new();
    if let Some(url) = &answers.base_url {
        lines.push(
            "# Where it is, and how it is spoken to: chat, responses, messages or gemini."
                .to_owned(),
        );
        lines.push(format!("base_url = {}", quoted(url)));
        let mut presets = presets().iter();
        let preset = presets.find(|it| it.name == answers.provider);
        let wire = preset.map_or("chat", |it| it.wire_api);
        lines.push(format!("wire_api = {}", quoted(wire)));
    }
    match &answers.key {
        KeyLocation::None | KeyLocation::Stored => {}
        KeyLocation::Variable(name) if is_usual(answers, name) => {}
        KeyLocation::Variable(name) => {
            lines.push(
                "# The environment variable that holds its key, where the server is started."
                    .to_owned(),
            );
            lines.push(format!("env_key = {}", quoted(name)));
        }
        KeyLocation::File(path) => {
            lines.push("# The file that holds its key, and nothing else.".to_owned());
            lines.push(format!("key_file = {}", quoted(path)));
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    let name = Key::new(answers.provider.as_str());
    format!("\n[model_providers.{name}]\n{}\n", lines.join("\n"))
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_variable_is_not_named_again() {
        let text = of(&InitAnswers {
            provider: "openai".to_owned(),
            model: "m".to_owned(),
            base_url: None,
            key: KeyLocation::Variable("OPENAI_API_KEY".to_owned()),
            approval: InitApproval::Read,
        });
        assert!(text.contains("OPENAI_API_KEY"), "{text}");
        assert!(!text.contains("env_key"), "{text}");
    }

    #[test]
    fn every_answer_yields_valid_toml() {
        for (provider, base_url, key) in [
            ("openai", None, KeyLocation::Variable("MINE".to_owned())),
            ("llamacpp", None, KeyLocation::None),
            ("anthropic", None, KeyLocation::Stored),
            (
                "my own",
                Some("http://h/\"v1\""),
                KeyLocation::File("~/a \"key\"".to_owned()),
            ),
        ] {
            for approval in [
                InitApproval::Read,
                InitApproval::Workspace,
                InitApproval::All,
            ] {
                let text = of(&InitAnswers {
                    provider: provider.to_owned(),
                    model: "m\"\n".to_owned(),
                    base_url: base_url.map(str::to_owned),
                    key: key.clone(),
                    approval,
                });
                let table: toml::Table = text.parse().expect(&text);
                assert_eq!(
                    table["model"].as_str(),
                    Some(format!("{provider}/m\"\n").as_str())
                );
                let section = table.get("model_providers").and_then(|it| it.get(provider));
                let value = |key: &str| section?.get(key)?.as_str();
                assert_eq!(value("base_url"), base_url);
                match &key {
                    KeyLocation::None | KeyLocation::Stored => {
                        assert_eq!((value("env_key"), value("key_file")), (None, None))
                    }
                    KeyLocation::Variable(name) => {
                        assert_eq!(value("env_key"), Some(name.as_str()))
                    }
                    KeyLocation::File(path) => assert_eq!(value("key_file"), Some(path.as_str())),
                }
                assert!(text.lines().all(|it| it.chars().count() <= 120), "{text}");
            }
        }
    }
}
