//! The configuration of the store of threads.

use crate::keys::STORE_TABLE;
use crate::providers::Secret;
use crate::setting_error::SettingError;
use crate::standalone::Configuration;

/// Store of threads that the configuration names. A server reads it once, at its start.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum StoreSetting {
    /// The home's own file.
    #[default]
    Local,
    /// A PostgreSQL database.
    Postgres(PostgresStore),
}

/// A PostgreSQL database.
#[derive(Clone, Debug, PartialEq)]
pub struct PostgresStore {
    /// Address, which may contain a password.
    pub address: Secret,
    /// Schema of the tables, if it is not the default one.
    pub schema: Option<String>,
}

impl Configuration {
    /// Returns the store of threads. A value that cannot be used is an error: with another store
    /// than the configured one, threads would seem lost.
    pub fn store(&self) -> Result<StoreSetting, SettingError> {
        let variable = |name: &str| std::env::var(name).ok();
        store(self.state().value(STORE_TABLE), variable)
    }
}

/// Maximum length of a schema's name, which is PostgreSQL's.
const SCHEMA_BYTES_MAX: usize = 63;

fn store(
    table: Option<&toml::Value>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<StoreSetting, SettingError> {
    let refused = |what: String| SettingError::Refused(format!("{what} in the configuration"));
    let Some(table) = table else {
        return Ok(StoreSetting::Local);
    };
    let table = table
        .as_table()
        .ok_or_else(|| refused(format!("`{STORE_TABLE}` must be a table")))?;
    let known = ["address", "address_env", "schema"];
    if let Some(key) = table.keys().find(|it| !known.contains(&it.as_str())) {
        return Err(refused(format!(
            "`{STORE_TABLE}` has no `{key}`; use {}",
            known.join(", ")
        )));
    }
    let text = |key: &str| match table.get(key) {
        None => Ok(None),
        Some(toml::Value::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
        Some(_) => Err(refused(format!("`{STORE_TABLE}.{key}` must be a text"))),
    };
    let address = match (text("address")?, text("address_env")?) {
        (Some(_), Some(_)) => {
            let what = "both `store.address` and `store.address_env`; remove one of them";
            return Err(refused(what.to_owned()));
        }
        (Some(address), None) => address,
        (None, Some(name)) => variable(&name).filter(|it| !it.is_empty()).ok_or_else(|| {
            SettingError::Refused(format!(
                "the environment variable {name}, which `store.address_env` names, is not set; \
                     set it to the address of the database"
            ))
        })?,
        (None, None) => {
            let what = "neither `store.address` nor `store.address_env`; set one of them, or remove \
                        `[store]` to store threads in the home";
            return Err(refused(what.to_owned()));
        }
    };
    let schema = text("schema")?;
    let is_name = |it: &String| {
        it.len() <= SCHEMA_BYTES_MAX
            && it.starts_with(|it: char| it.is_ascii_lowercase())
            && it
                .bytes()
                .all(|it| matches!(it, b'a'..=b'z' | b'0'..=b'9' | b'_'))
    };
    if schema.as_ref().is_some_and(|it| !is_name(it)) {
        return Err(refused(format!(
            "`store.schema` must be a letter and then letters, digits or `_`, in lower case, at most \
             {SCHEMA_BYTES_MAX} in all"
        )));
    }
    Ok(StoreSetting::Postgres(PostgresStore {
        address: Secret(address),
        schema,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_is_local_or_fully_named() {
        let read = |text: &str| {
            let table: toml::Table = text.parse().expect("TOML");
            let variable = |name: &str| (name == "URL").then(|| "postgres://of-url".to_owned());
            store(table.get(STORE_TABLE), variable)
        };
        let postgres = |address: &str, schema: Option<&str>| {
            StoreSetting::Postgres(PostgresStore {
                address: Secret(address.to_owned()),
                schema: schema.map(str::to_owned),
            })
        };
        for (text, expected) in [
            ("", StoreSetting::Local),
            (
                "[store]\naddress = 'postgres://a'",
                postgres("postgres://a", None),
            ),
            (
                "[store]\naddress = 'host=a'\nschema = 'team_2'",
                postgres("host=a", Some("team_2")),
            ),
            (
                "[store]\naddress_env = 'URL'",
                postgres("postgres://of-url", None),
            ),
        ] {
            assert_eq!(read(text), Ok(expected), "{text}");
        }
        for (text, expected) in [
            ("store = 'postgres://a'", "must be a table"),
            ("[store]", "neither"),
            ("[store]\nurl = 'postgres://a'", "no `url`"),
            ("[store]\naddress = 1", "must be a text"),
            ("[store]\naddress = 'a'\naddress_env = 'URL'", "both"),
            ("[store]\naddress_env = 'NONE'", "NONE"),
            ("[store]\naddress = 'a'\nschema = 'A'", "lower case"),
            ("[store]\naddress = 'a'\nschema = '1'", "lower case"),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn no_text_of_a_setting_shows_the_address() {
        let store = StoreSetting::Postgres(PostgresStore {
            address: Secret("postgres://u:secret@h".to_owned()),
            schema: None,
        });
        assert!(!format!("{store:?}").contains("secret"));
    }
}
