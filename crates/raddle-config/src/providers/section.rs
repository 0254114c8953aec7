//! The configuration of one provider, key by key.

use std::path::PathBuf;

use super::keys::{KeyCommand, KeySource, OAuth, Secret, SignIn};
use super::{ProviderError, presets::Preset};

/// The part of the configuration for one provider, or a table in it.
pub(super) struct Section<'a> {
    pub(super) table: Option<&'a toml::Value>,
    /// Name of the section, for people.
    pub(super) location: String,
}

impl<'a> Section<'a> {
    fn get(&self, key: &str) -> Option<&'a toml::Value> {
        self.table?.get(key)
    }

    fn invalid(&self, key: &str, expected: &str) -> ProviderError {
        ProviderError(format!("`{key}` must be {expected}; see {}", self.location))
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<String>, ProviderError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let text = value.as_str().ok_or_else(|| self.invalid(key, "a text"))?;
        Ok(Some(text.to_owned()))
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<u32>, ProviderError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let number = value.as_integer().and_then(|it| u32::try_from(it).ok());
        let number = number.ok_or_else(|| self.invalid(key, "a number from 0 to 4294967295"))?;
        Ok(Some(number))
    }

    /// Returns a table of texts.
    pub(super) fn texts(&self, key: &str) -> Result<Vec<(String, String)>, ProviderError> {
        let Some(value) = self.get(key) else {
            return Ok(Vec::new());
        };
        let invalid = || self.invalid(key, "a table of texts");
        let table = value.as_table().ok_or_else(invalid)?;
        let texts = table.iter().map(|(name, value)| {
            let text = value.as_str().ok_or_else(invalid)?;
            Ok((name.clone(), text.to_owned()))
        });
        texts.collect()
    }

    /// Returns a list of texts.
    fn list(&self, key: &str) -> Result<Vec<String>, ProviderError> {
        let Some(value) = self.get(key) else {
            return Ok(Vec::new());
        };
        let invalid = || self.invalid(key, "a list of texts");
        let list = value.as_array().ok_or_else(invalid)?;
        let texts = list.iter().map(|it| it.as_str().map(str::to_owned));
        texts.collect::<Option<_>>().ok_or_else(invalid)
    }

    /// Returns an absolute path. Never a path relative to the server's folder: that may be a
    /// workspace.
    fn path(&self, key: &str) -> Result<Option<PathBuf>, ProviderError> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        let path = match text.strip_prefix("~/") {
            Some(rest) => std::env::home_dir().map(|home| home.join(rest)),
            None => Some(PathBuf::from(text)),
        };
        let path = path.filter(|it| it.is_absolute());
        let invalid = || self.invalid(key, "a path that begins with / or ~/");
        path.ok_or_else(invalid).map(Some)
    }

    /// Returns the source of the key: from the section, else from the preset.
    pub(super) fn key(
        &self,
        preset: Option<&Preset>,
        folder: PathBuf,
    ) -> Result<KeySource, ProviderError> {
        let sources = [
            "env_key",
            "key_file",
            "auth",
            "experimental_bearer_token",
            "oauth",
        ];
        let named: Vec<&str> = sources
            .into_iter()
            .filter(|it| self.get(it).is_some())
            .collect();
        if let [first, second, ..] = named[..] {
            return Err(ProviderError(format!(
                "`{first}` and `{second}` both say where the key is; keep one of them under {}",
                self.location
            )));
        }
        if let Some(file) = self.path("key_file")? {
            return Ok(KeySource::File(file));
        }
        if let Some(token) = self.text("experimental_bearer_token")? {
            return Ok(KeySource::Inline(Secret(token)));
        }
        if let Some(auth) = self.get("auth") {
            let auth = Section {
                table: Some(auth),
                location: format!("`auth` under {}", self.location),
            };
            return auth.command(folder).map(KeySource::Command);
        }
        if let Some(variable) = self.text("env_key")? {
            let instructions = self.text("env_key_instructions")?;
            return Ok(KeySource::Environment {
                variable,
                instructions,
            });
        }
        let sign_in = SignIn {
            variable: preset.and_then(|it| it.env_key).map(str::to_owned),
            is_required: self.flag("requires_openai_auth")? || self.get("oauth").is_some(),
            oauth: self.oauth()?,
        };
        Ok(match sign_in.is_required || sign_in.variable.is_some() {
            true => KeySource::Stored(sign_in),
            false => KeySource::None,
        })
    }

    fn flag(&self, key: &str) -> Result<bool, ProviderError> {
        let Some(value) = self.get(key) else {
            return Ok(false);
        };
        value
            .as_bool()
            .ok_or_else(|| self.invalid(key, "true or false"))
    }

    /// Returns the endpoints that `oauth` names.
    fn oauth(&self) -> Result<Option<OAuth>, ProviderError> {
        let Some(oauth) = self.get("oauth") else {
            return Ok(None);
        };
        let oauth = Section {
            table: Some(oauth),
            location: format!("`oauth` under {}", self.location),
        };
        let needed = |key: &str| {
            let text = oauth.text(key)?.filter(|it| !it.is_empty());
            text.ok_or_else(|| oauth.invalid(key, "there"))
        };
        let port = oauth.number("redirect_port")?;
        let port = port.map(|it| {
            u16::try_from(it).map_err(|_| oauth.invalid("redirect_port", "a number up to 65535"))
        });
        Ok(Some(OAuth {
            client_id: needed("client_id")?,
            token_url: needed("token_url")?,
            authorize_url: oauth.text("authorize_url")?,
            device_url: oauth.text("device_url")?,
            scopes: oauth.list("scopes")?,
            redirect_port: port.transpose()?,
        }))
    }

    /// Returns the command that `auth` names.
    fn command(&self, folder: PathBuf) -> Result<KeyCommand, ProviderError> {
        let program = self.text("command")?;
        let program =
            program.filter(|it| !it.is_empty() && (!it.contains('/') || it.starts_with('/')));
        let invalid = || self.invalid("command", "a program's name, or its path from / on");
        Ok(KeyCommand {
            program: program.ok_or_else(invalid)?,
            args: self.list("args")?,
            cwd: self.path("cwd")?.unwrap_or(folder),
            env_vars: self.list("env_vars")?,
            timeout_ms: self.number("timeout_ms")?,
            refresh_interval_ms: self.number("refresh_interval_ms")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> toml::Value {
        toml::from_str(text).expect("TOML")
    }

    fn section(table: &toml::Value) -> Section<'_> {
        Section {
            table: Some(table),
            location: "[here]".to_owned(),
        }
    }

    #[test]
    fn invalid_values_name_the_expected_type() {
        let table =
            value("a = 1\nb = 'x'\nc = { d = 'y' }\ne = -1\nf = { g = 2 }\nh = ['x']\ni = [1]");
        let section = section(&table);
        assert_eq!(section.number("a"), Ok(Some(1)));
        assert_eq!(section.text("b"), Ok(Some("x".to_owned())));
        assert_eq!(
            section.texts("c"),
            Ok(vec![("d".to_owned(), "y".to_owned())])
        );
        assert_eq!(section.list("h"), Ok(vec!["x".to_owned()]));
        assert_eq!(section.number("z"), Ok(None));
        let errors = [
            section.text("a").err(),
            section.number("b").err(),
            section.number("e").err(),
            section.texts("b").err(),
            section.texts("f").err(),
            section.list("b").err(),
            section.list("i").err(),
            section.path("b").err(),
        ];
        for error in errors {
            let error = error.expect("an error").to_string();
            assert!(error.ends_with("; see [here]"), "{error}");
        }
    }

    #[test]
    fn a_key_has_one_source() {
        let openai = super::super::presets::named("openai");
        let key = |text: &str, preset| section(&value(text)).key(preset, "/config".into());
        let variable = |name: &str| {
            Ok(KeySource::Environment {
                variable: name.to_owned(),
                instructions: None,
            })
        };
        assert_eq!(key("", None), Ok(KeySource::None));
        let stored = SignIn {
            variable: Some("OPENAI_API_KEY".to_owned()),
            ..SignIn::default()
        };
        assert_eq!(key("", openai), Ok(KeySource::Stored(stored)));
        let pages = SignIn {
            is_required: true,
            oauth: Some(OAuth {
                client_id: "c".to_owned(),
                token_url: "https://t".to_owned(),
                redirect_port: Some(9),
                ..OAuth::default()
            }),
            ..SignIn::default()
        };
        let oauth = "oauth = { client_id = 'c', token_url = 'https://t', redirect_port = 9 }";
        assert_eq!(key(oauth, None), Ok(KeySource::Stored(pages)));
        assert_eq!(key("env_key = 'MINE'", openai), variable("MINE"));
        assert_eq!(
            key("key_file = '/k'", openai),
            Ok(KeySource::File("/k".into()))
        );
        let command = KeyCommand {
            program: "pass".to_owned(),
            args: vec!["show".to_owned()],
            cwd: "/config".into(),
            env_vars: Vec::new(),
            timeout_ms: None,
            refresh_interval_ms: Some(9),
        };
        assert_eq!(
            key(
                "auth = { command = 'pass', args = ['show'], refresh_interval_ms = 9 }",
                openai
            ),
            Ok(KeySource::Command(command))
        );
        let token = key("experimental_bearer_token = 'sekret'", None).expect("a source");
        assert!(!format!("{token:?}").contains("sekret"), "{token:?}");
        // Relative paths could lead into a workspace.
        for invalid in [
            "key_file = 'k'",
            "auth = { command = './pass' }",
            "auth = { command = 'bin/pass' }",
            "auth = { command = '' }",
            "auth = { args = ['x'] }",
            "auth = { command = 'pass', cwd = 'work' }",
            "auth = 'pass'",
            "env_key = 'A'\nkey_file = '/k'",
            "requires_openai_auth = 'yes'",
            "oauth = { client_id = 'c' }",
            "oauth = { client_id = 'c', token_url = 'https://t', redirect_port = 65536 }",
        ] {
            let error = key(invalid, None).expect_err(invalid).to_string();
            assert!(error.contains("[here]"), "{invalid}: {error}");
        }
    }
}
