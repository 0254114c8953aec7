//! Adds a rule to the user's file, and leaves everything else in it unchanged.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use raddle_core::policy::{Amendment, Layer};
use raddle_core::ports::AmendError;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value, value};

use super::read;

/// Adds a rule to a file, and creates the file if needed. Concurrent processes do not lose rules.
pub(super) fn add(path: &Path, amendment: &Amendment) -> Result<(), AmendError> {
    let unwritable = |error: io::Error| AmendError::Unwritable(error.to_string());
    let unreadable = |error: String| AmendError::Unreadable(error);
    let _lock = lock(path).map_err(unwritable)?;
    let before = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        other => other.map_err(|it| unreadable(it.to_string()))?,
    };
    let home = std::env::var_os("HOME");
    let home = home.as_deref().map(Path::new);
    let there =
        read::parse(&before, Layer::User, home).map_err(|it| unreadable(format!("{it:#}")))?;
    if there.policy.rules.contains(&amendment.rule()) {
        return Ok(());
    }
    let mut document: DocumentMut = before
        .parse()
        .map_err(|it: toml_edit::TomlError| unreadable(it.to_string()))?;
    let words: Array = amendment.words().iter().map(String::as_str).collect();
    let rules = document
        .entry("rule")
        .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    match rules {
        Item::ArrayOfTables(rules) => {
            let mut rule = Table::new();
            rule["command"] = value(words);
            rule["verdict"] = value("allow");
            rules.push(rule);
        }
        Item::Value(Value::Array(rules)) => {
            let mut rule = InlineTable::new();
            rule.insert("command", Value::Array(words));
            rule.insert("verdict", "allow".into());
            rules.push(rule);
        }
        _ => return Err(unreadable("`rule` is no list".to_owned())),
    }
    replace(path, &document.to_string()).map_err(unwritable)
}

/// Locks out other processes of the same home.
fn lock(path: &Path) -> io::Result<fs::File> {
    if let Some(folder) = path.parent() {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(folder)?;
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(path.with_extension("toml.lock"))?;
    file.lock()?;
    Ok(file)
}

/// Replaces the file atomically, so that a crash leaves the old or the new content.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    // A link stays a link: its target is replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mode = fs::metadata(path).map_or(0o600, |it| it.permissions().mode() & 0o777);
    let new = path.with_extension("toml.new");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(mode);
    let mut file = options.open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)
}
