//! What the configuration says of one provider, key by key.

use std::path::PathBuf;

use super::keys::{KeyCommand, KeySource, OAuth, Secret, SignIn};
use super::{ProviderError, presets::Preset};

/// The part of the configuration that is about one provider, or a table in it.
pub(super) struct Section<'a> {
    pub(super) table: Option<&'a toml::Value>,
    /// Where it is, for people.
    pub(super) place: String,
}

impl<'a> Section<'a> {
    fn get(&self, key: &str) -> Option<&'a toml::Value> {
        self.table?.get(key)
    }

    fn wrong(&self, key: &str, wanted: &str) -> ProviderError {
        ProviderError(format!("`{key}` must be {wanted}; see {}", self.place))
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<String>, ProviderError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let text = value.as_str().ok_or_else(|| self.wrong(key, "a text"))?;
        Ok(Some(text.to_owned()))
    }

    pub(super) fn number(&self, key: &str) -> Result<Option<u32>, ProviderError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let number = value.as_integer().and_then(|it| u32::try_from(it).ok());
        let number = number.ok_or_else(|| self.wrong(key, "a number from 0 to 4294967295"))?;
        Ok(Some(number))
    }

    /// A table of texts.
    pub(super) fn texts(&self, key: &str) -> Result<Vec<(String, String)>, ProviderError> {
        let Some(value) = self.get(key) else {
            return Ok(Vec::new());
        };
        let wrong = || self.wrong(key, "a table of texts");
        let table = value.as_table().ok_or_else(wrong)?;
        let texts = table.iter().map(|(name, value)| {
            let text = value.as_str().ok_or_else(wrong)?;
            Ok((name.clone(), text.to_owned()))
        });
        texts.collect()
    }

    /// A list of texts.
    fn list(&self, key: &str) -> Result<Vec<String>, ProviderError> {
        let Some(value) = self.get(key) else {
            return Ok(Vec::new());
        };
        let wrong = || self.wrong(key, "a list of texts");
        let list = value.as_array().ok_or_else(wrong)?;
        let texts = list.iter().map(|it| it.as_str().map(str::to_owned));
        texts.collect::<Option<_>>().ok_or_else(wrong)
    }

    /// A path. Never one that begins where the server runs: that may be a workspace.
    fn path(&self, key: &str) -> Result<Option<PathBuf>, ProviderError> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        let path = match text.strip_prefix("~/") {
            Some(rest) => std::env::home_dir().map(|home| home.join(rest)),
            None => Some(PathBuf::from(text)),
        };
        let path = path.filter(|it| it.is_absolute());
        let wrong = || self.wrong(key, "a path that begins with / or ~/");
        path.ok_or_else(wrong).map(Some)
    }

    /// Where the key comes from: as the section says, else as the preset does.
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
        if let [one, other, ..] = named[..] {
            return Err(ProviderError(format!(
                "`{one}` and `{other}` both say where the key is; keep one of them under {}",
                self.place
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
                place: format!("`auth` under {}", self.place),
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
            .ok_or_else(|| self.wrong(key, "true or false"))
    }

    /// The pages that `oauth` names.
    fn oauth(&self) -> Result<Option<OAuth>, ProviderError> {
        let Some(oauth) = self.get("oauth") else {
            return Ok(None);
        };
        let oauth = Section {
            table: Some(oauth),
            place: format!("`oauth` under {}", self.place),
        };
        let needed = |key: &str| {
            let text = oauth.text(key)?.filter(|it| !it.is_empty());
            text.ok_or_else(|| oauth.wrong(key, "there"))
        };
        let port = oauth.number("redirect_port")?;
        let port = port.map(|it| {
            u16::try_from(it).map_err(|_| oauth.wrong("redirect_port", "a number up to 65535"))
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

    /// The command that `auth` names.
    fn command(&self, folder: PathBuf) -> Result<KeyCommand, ProviderError> {
        let program = self.text("command")?;
        let program =
            program.filter(|it| !it.is_empty() && (!it.contains('/') || it.starts_with('/')));
        let wrong = || self.wrong("command", "a program's name, or its path from / on");
        Ok(KeyCommand {
            program: program.ok_or_else(wrong)?,
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
            place: "[here]".to_owned(),
        }
    }

    #[test]
    fn what_a_key_must_be_is_said() {
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
        let wrong = [
            section.text("a").err(),
            section.number("b").err(),
            section.number("e").err(),
            section.texts("b").err(),
            section.texts("f").err(),
            section.list("b").err(),
            section.list("i").err(),
            section.path("b").err(),
        ];
        for error in wrong {
            let error = error.expect("an error").to_string();
            assert!(error.ends_with("; see [here]"), "{error}");
        }
    }

    #[test]
    fn a_key_comes_from_one_named_place() {
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
        // Paths that begin where the server runs could lead into a workspace.
        for wrong in [
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
            let error = key(wrong, None).expect_err(wrong).to_string();
            assert!(error.contains("[here]"), "{wrong}: {error}");
        }
    }
}
