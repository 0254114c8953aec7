//! Edits a configuration file in place: comments and order stay.

use raddle_protocol::{ConfigEdit, MergeStrategy};
use serde_json::Value as Json;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use crate::config_error::ConfigWriteError;
use crate::keys::{self, PLUGINS_TABLE};
use crate::{layers, redaction};

/// A file after its edits.
#[derive(Debug)]
pub(crate) struct EditedFile {
    pub(crate) text: String,
    /// The keys that were written.
    pub(crate) paths: Vec<Vec<String>>,
}

/// Applies all edits to a file's text, or returns which one is invalid. `merged` is the
/// configuration of all files.
pub(crate) fn apply(
    text: &str,
    edits: &[ConfigEdit],
    merged: &toml::Table,
) -> Result<EditedFile, ConfigWriteError> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        let line = layers::line_of(text, error.span());
        let what = error.message();
        invalid(format!("the file is not valid TOML: line {line}: {what}"))
    })?;
    let mut paths = Vec::new();
    for edit in edits {
        let path = layers::key_path(&edit.key_path)
            .map_err(|error| invalid(format!("keyPath: {error}")))?;
        let path = with_plugin_id(document.as_table(), merged, path)?;
        let upsert = match &edit.merge_strategy {
            MergeStrategy::Replace => false,
            MergeStrategy::Upsert => true,
            MergeStrategy::Unrecognized(other) => {
                return Err(invalid(format!(
                    "mergeStrategy must be replace or upsert, not {other}"
                )));
            }
        };
        set_value(document.as_table_mut(), &path, &edit.value, upsert)?;
        paths.push(path);
    }
    let before: toml::Table = text
        .parse()
        .map_err(|error| invalid(format!("the file is not valid TOML: {error}")))?;
    let text = document.to_string();
    let table: toml::Table = text
        .parse()
        .map_err(|error| invalid(format!("the result would not be valid TOML: {error}")))?;
    // A client that writes back what it read would overwrite the keys with these placeholders.
    let problems_before = keys::check_layer(&before);
    let placeholders_before = redaction::placeholders(&before);
    let mut placeholders = redaction::placeholders(&table).into_iter();
    if let Some(key) = placeholders.find(|it| !placeholders_before.contains(it)) {
        return Err(invalid(format!(
            "`{key}` would be `…`, the placeholder for a secret; leave it out of the edit with mergeStrategy upsert, or set its value"
        )));
    }
    // Earlier invalid values do not prevent other edits.
    let mut invalid_values = keys::check_layer(&table).invalid.into_iter();
    if let Some(problem) = invalid_values.find(|it| !problems_before.invalid.contains(it)) {
        return Err(invalid(problem));
    }
    Ok(EditedFile { text, paths })
}

/// Returns a path in which the id of an installed plugin is one key. Clients of Codex write the id
/// without quotes, and the ids of Raddle have dots.
fn with_plugin_id(
    table: &Table,
    merged: &toml::Table,
    path: Vec<String>,
) -> Result<Vec<String>, ConfigWriteError> {
    // A part with a dot was quoted, so it is an id already.
    if path.len() < 3 || path[0] != PLUGINS_TABLE || path[1].contains('.') {
        return Ok(path);
    }
    let entries = table.get(PLUGINS_TABLE).and_then(Item::as_table_like);
    let is_in_file = |id: &String| entries.is_some_and(|it| it.contains_key(id));
    let installed = merged.get(PLUGINS_TABLE).and_then(toml::Value::as_table);
    let is_installed = |id: &String| {
        let entry = installed.and_then(|it| it.get(id));
        is_in_file(id) || entry.is_some_and(|it| it.get("path").is_some())
    };
    let ids = (3..=path.len()).map(|end| (end, path[1..end].join(".")));
    let mut ids = ids.filter(|(_, id)| is_installed(id));
    let Some((end, id)) = ids.next() else {
        return Ok(path);
    };
    if let Some((_, other)) = ids.next() {
        return Err(invalid(format!(
            "keyPath: the plugins `{id}` and `{other}` are installed; quote the id, as in {}",
            keys::dotted(&[PLUGINS_TABLE.to_owned(), id.clone()])
        )));
    }
    if !is_in_file(&id) {
        return Err(ConfigWriteError::Rejected {
            kind: "configLayerReadonly",
            message: format!(
                "the plugin `{id}` is not installed in the user's configuration; change it where \
                 it is installed"
            ),
        });
    }
    let mut resolved = vec![PLUGINS_TABLE.to_owned(), id];
    resolved.extend_from_slice(&path[end..]);
    Ok(resolved)
}

fn invalid(message: String) -> ConfigWriteError {
    ConfigWriteError::Rejected {
        kind: "configValidationError",
        message,
    }
}

fn set_value(
    table: &mut dyn TableLike,
    path: &[String],
    value: &Json,
    upsert: bool,
) -> Result<(), ConfigWriteError> {
    let Some((first, rest)) = path.split_first() else {
        return Ok(());
    };
    if !rest.is_empty() {
        if value.is_null() && !table.get(first).is_some_and(Item::is_table_like) {
            // Only a table has members to remove.
            return Ok(());
        }
        // Removes a value in the place of the table, with its key: the spaces around that key
        // belong to a value.
        if table.get(first).is_some_and(|it| !it.is_table_like()) {
            table.remove(first);
        }
        let item = table.entry(first).or_insert_with(|| {
            let mut inner = Table::new();
            // Only the innermost table gets a header.
            inner.set_implicit(true);
            Item::Table(inner)
        });
        return match item.as_table_like_mut() {
            Some(inner) => set_value(inner, rest, value, upsert),
            None => Ok(()),
        };
    }
    match value {
        Json::Null => {
            table.remove(first);
        }
        Json::Object(members) if upsert && table.get(first).is_some_and(Item::is_table_like) => {
            let Some(inner) = table.get_mut(first).and_then(Item::as_table_like_mut) else {
                return Ok(());
            };
            for (key, value) in members {
                set_value(inner, std::slice::from_ref(key), value, true)?;
            }
        }
        Json::Object(members) => {
            let mut inner = Table::new();
            match table.get(first) {
                // The new table replaces the old one in its position, with the comments above it.
                Some(Item::Table(old)) => {
                    *inner.decor_mut() = old.decor().clone();
                    inner.set_position(old.position());
                }
                Some(_) => drop(table.remove(first)),
                None => {}
            }
            for (key, value) in members {
                set_value(&mut inner, std::slice::from_ref(key), value, upsert)?;
            }
            table.insert(first, Item::Table(inner));
        }
        _ => {
            let new = to_toml(value)?;
            match table.get_mut(first).and_then(Item::as_value_mut) {
                // A comment after the old value stays after the new one.
                Some(old) => {
                    let decor = old.decor().clone();
                    *old = new;
                    *old.decor_mut() = decor;
                }
                None => {
                    table.insert(first, Item::Value(new));
                }
            }
        }
    }
    Ok(())
}

fn to_toml(value: &Json) -> Result<Value, ConfigWriteError> {
    Ok(match value {
        Json::Null => return Err(invalid("TOML has no null inside a list".to_owned())),
        Json::Bool(flag) => Value::from(*flag),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Value::from(whole),
            (None, Some(real)) => Value::from(real),
            (None, None) => return Err(invalid(format!("{number} is not a number TOML can hold"))),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(values) => {
            let mut array = Array::new();
            for value in values {
                array.push(to_toml(value)?);
            }
            Value::Array(array)
        }
        Json::Object(members) => {
            let mut table = InlineTable::new();
            for (key, value) in members.iter().filter(|(_, value)| !value.is_null()) {
                table.insert(key, to_toml(value)?);
            }
            Value::InlineTable(table)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn edited(text: &str, edits: &[(&str, Json, MergeStrategy)]) -> Result<String, String> {
        let edits: Vec<_> = edits
            .iter()
            .map(|(key, value, strategy)| ConfigEdit {
                key_path: (*key).to_owned(),
                value: value.clone(),
                merge_strategy: strategy.clone(),
            })
            .collect();
        let merged = "[plugins.'org.managed']\npath = '/m'\n"
            .parse()
            .expect("TOML");
        match apply(text, &edits, &merged) {
            Ok(edited) => Ok(edited.text),
            Err(ConfigWriteError::Rejected { message, .. }) => Err(message),
            Err(other) => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn edits_keep_the_file_as_it_was() {
        use MergeStrategy::{Replace, Upsert};
        let check = |original: &str, key: &str, value: Json, strategy, after: &str| {
            assert_eq!(
                edited(original, &[(key, value, strategy)]).as_deref(),
                Ok(after),
                "{key}"
            );
        };
        check("", "model", json!("a"), Replace, "model = \"a\"\n");
        check(
            "# mine\nmodel = \"a\" # why\n",
            "model",
            json!("b"),
            Replace,
            "# mine\nmodel = \"b\" # why\n",
        );
        check(
            "",
            r#"projects."/a b".trust_level"#,
            json!("trusted"),
            Upsert,
            "[projects.\"/a b\"]\ntrust_level = \"trusted\"\n",
        );
        check(
            "model = \"a\"\nx = 1\n",
            "model",
            json!(null),
            Replace,
            "x = 1\n",
        );
        check("", "a.b", json!(null), Replace, "");
        check(
            "[a]\nb = 1\n",
            "a",
            json!({"c": 2}),
            Upsert,
            "[a]\nb = 1\nc = 2\n",
        );
        check(
            "[a]\nb = 1\n",
            "a",
            json!({"c": 2}),
            Replace,
            "[a]\nc = 2\n",
        );
        check(
            "",
            "list",
            json!([1, "x", {"y": 2.5}]),
            Replace,
            "list = [1, \"x\", { y = 2.5 }]\n",
        );
        check("a = 1\n", "a.b", json!(2), Replace, "[a]\nb = 2\n");
        check("a = 1\n", "a", json!({"b": 2}), Replace, "[a]\nb = 2\n");
        check("a = 1\n", "a.b", json!(null), Replace, "a = 1\n");
        check("[a]\nb = 1\n", "a", json!(2), Replace, "a = 2\n");
        for key in ["plugins.org.a", "plugins.\"org.a\""] {
            check(
                "[plugins.\"org.a\"]\npath = \"/a\"\n",
                key,
                json!({"enabled": false}),
                Upsert,
                "[plugins.\"org.a\"]\npath = \"/a\"\nenabled = false\n",
            );
        }
        check(
            "[plugins.\"org.a\"]\npath = \"/a\"\n",
            "plugins.org.a.enabled",
            json!(true),
            Replace,
            "[plugins.\"org.a\"]\npath = \"/a\"\nenabled = true\n",
        );
        check(
            "# One.\n[a]\nb = 1\n\n# Two.\n[c]\nd = 1\n",
            "a",
            json!({"e": 2}),
            Replace,
            "# One.\n[a]\ne = 2\n\n# Two.\n[c]\nd = 1\n",
        );
    }

    #[test]
    fn an_edit_changes_no_other_plugin_than_the_one_that_it_names() {
        let both =
            "[plugins.\"org.a\"]\npath = \"/a\"\n\n[plugins.\"org.a.enabled\"]\npath = \"/b\"\n";
        let disabled =
            |key: &str, value: Json| edited(both, &[(key, value, MergeStrategy::Upsert)]);
        let after = both.replace("\"/a\"\n", "\"/a\"\nenabled = false\n");
        let quoted = disabled("plugins.\"org.a\".enabled", json!(false));
        assert_eq!(quoted, Ok(after.clone()));
        let short = disabled("plugins.org.a", json!({ "enabled": false }));
        assert_eq!(short, Ok(after));
        let error = disabled("plugins.org.a.enabled", json!(false)).expect_err("ambiguous");
        let expected = "`org.a` and `org.a.enabled` are installed; quote the id, as in \
                        plugins.\"org.a\"";
        assert!(error.contains(expected), "{error}");
        // Another file installs it, which an entry here would override without a path.
        for key in ["plugins.org.managed", "plugins.org.managed.enabled"] {
            let error = disabled(key, json!(null)).expect_err(key);
            assert!(
                error.contains("`org.managed` is not installed in"),
                "{error}"
            );
        }
    }

    #[test]
    fn bad_edits_say_why() {
        use MergeStrategy::Replace;
        for (key, value, why) in [
            ("", json!(1), "keyPath: the key must not be empty"),
            ("model", json!(7), "`model` must be a string"),
            ("x", json!([null]), "TOML has no null inside a list"),
        ] {
            assert_eq!(edited("", &[(key, value, Replace)]), Err(why.to_owned()));
        }
        assert!(edited("", &[("x", json!(1), MergeStrategy::from("mix"))]).is_err());
    }

    #[test]
    fn placeholders_never_overwrite_secrets() {
        use MergeStrategy::{Replace, Upsert};
        let before = "[model_providers.a]\nbase_url = \"http://h/v1?key=sekret\"\n\
            experimental_bearer_token = \"sekret\"\nhttp_headers = { X = \"sekret\" }\n";
        for (key, value, at) in [
            (
                "model_providers.a.experimental_bearer_token",
                json!("…"),
                "experimental_bearer_token",
            ),
            (
                "model_providers.a.base_url",
                json!("http://h/v1…"),
                "base_url",
            ),
            (
                "model_providers.a",
                json!({"http_headers": {"X": "…"}}),
                "http_headers.X",
            ),
            (
                "model_providers",
                json!({"a": {"query_params": {"k": "…"}}}),
                "query_params.k",
            ),
        ] {
            for strategy in [Replace, Upsert] {
                let why = edited(before, &[(key, value.clone(), strategy)]).expect_err(key);
                let prefix = format!("`model_providers.a.{at}` would be `…`, ");
                assert!(why.starts_with(&prefix), "{why}");
            }
        }
        // Existing placeholders do not prevent other edits, or edits that replace them.
        let with_placeholder = "[model_providers.a]\nexperimental_bearer_token = \"…\"\n";
        for (key, value) in [
            ("model", json!("m…")),
            (
                "model_providers.a.experimental_bearer_token",
                json!("sekret"),
            ),
        ] {
            assert!(
                edited(with_placeholder, &[(key, value, Replace)]).is_ok(),
                "{key}"
            );
        }
    }
}
