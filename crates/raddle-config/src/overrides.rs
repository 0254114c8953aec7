//! Settings that a program is started with, above the configuration's files.

use std::fmt;
use std::str::FromStr;

use crate::config_error::KeyError;
use crate::{keys, layers};

/// A setting that a program is started with: a `-c key=value` of the command line, or an
/// environment variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    path: Vec<String>,
    value: toml::Value,
    /// Name of the environment variable, if it came from one.
    variable: Option<String>,
}

impl Override {
    /// Returns the settings from the environment, by a lookup of variables. They come before those
    /// of the command line, which are stronger. An empty variable counts as unset.
    pub fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Vec<Self> {
        let from_variables = keys::variables().filter_map(|(key, name)| {
            let value = variable(&name).filter(|it| !it.trim().is_empty())?;
            Some(Self {
                path: vec![key.to_owned()],
                value: value.trim().into(),
                variable: Some(name),
            })
        });
        from_variables.collect()
    }

    /// Returns its origin, for people.
    pub(crate) fn origin(&self) -> &str {
        self.variable.as_deref().unwrap_or("-c")
    }
}

impl FromStr for Override {
    type Err = KeyError;

    /// Parses the value as TOML; anything else is a plain string.
    fn from_str(text: &str) -> Result<Self, KeyError> {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| KeyError::NoValue(text.to_owned()))?;
        Ok(Self {
            path: layers::named_key_path(key.trim())?,
            value: value_of(value),
            variable: None,
        })
    }
}

/// Parses a value as people write it: text that is not TOML is a plain string.
pub(crate) fn value_of(text: &str) -> toml::Value {
    let text = text.trim();
    format!("x = {text}")
        .parse::<toml::Table>()
        .ok()
        .and_then(|mut table| table.remove("x"))
        .unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

impl Override {
    /// Returns the key, part by part.
    pub fn path(&self) -> &[String] {
        &self.path
    }

    pub(crate) fn value(&self) -> &toml::Value {
        &self.value
    }

    /// Returns the value as JSON, for the `config` member of a request.
    pub fn to_json(&self) -> serde_json::Value {
        layers::to_json(&self.value)
    }
}

impl fmt::Display for Override {
    /// Writes the form that `-c` accepts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, part) in self.path.iter().enumerate() {
            let dot = if number > 0 { "." } else { "" };
            write!(f, "{dot}{}", toml_edit::Key::new(part).display_repr())?;
        }
        write!(f, "={}", self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides() {
        for (text, path, value) in [
            ("model=x", vec!["model"], toml::Value::String("x".into())),
            (
                r#"model="x""#,
                vec!["model"],
                toml::Value::String("x".into()),
            ),
            ("a.b = 3", vec!["a", "b"], toml::Value::Integer(3)),
            (
                r#"projects."/a.b".trust_level=trusted"#,
                vec!["projects", "/a.b", "trust_level"],
                toml::Value::String("trusted".into()),
            ),
            ("x=true", vec!["x"], toml::Value::Boolean(true)),
            ("x=", vec!["x"], toml::Value::String(String::new())),
            ("x=a=b", vec!["x"], toml::Value::String("a=b".into())),
            (
                r#"a={b = "c", d = [1, 2.5]}"#,
                vec!["a"],
                toml::Value::Table(toml::toml! { b = "c"
                d = [1, 2.5] }),
            ),
        ] {
            let parsed: Override = text.parse().expect(text);
            assert_eq!(
                (parsed.path, parsed.value),
                (path.into_iter().map(str::to_owned).collect(), value),
                "{text}"
            );
            let rendered = text.parse::<Override>().expect(text).to_string();
            assert_eq!(rendered.parse(), text.parse::<Override>(), "{rendered}");
        }
        for text in ["model", "=x", "a..b=1", r#"a."b=1"#] {
            assert!(text.parse::<Override>().is_err(), "{text}");
        }
    }
}
