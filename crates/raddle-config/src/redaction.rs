//! Redaction of values in the configuration that may be secrets.

use toml::{Table, Value};

use crate::keys::{self, Kind};
use crate::layers::to_json;

/// Placeholder for a redacted value.
const REDACTED: &str = "…";

/// The way in which a value may be a secret.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SecretKind {
    /// Neither the value nor anything below it is a secret.
    No,
    /// All of it is a secret, or each value below it.
    All,
    /// A URL, which may contain a user or a key in its query.
    Address,
    /// A list of command line arguments, some of which may be secrets.
    Words,
    /// An unknown key: its name decides, or the name of a table above it.
    ByName,
}

/// The secrets among the known keys, and those below them; all other known keys are shown. A part
/// in capitals stands for any name.
const KNOWN_SECRETS: &[(&str, SecretKind)] = &[
    (
        "model_providers.NAME.experimental_bearer_token",
        SecretKind::All,
    ),
    ("model_providers.NAME.http_headers", SecretKind::All),
    ("model_providers.NAME.query_params", SecretKind::All),
    ("model_providers.NAME.base_url", SecretKind::Address),
    ("model_providers.NAME.oauth.token_url", SecretKind::Address),
    (
        "model_providers.NAME.oauth.authorize_url",
        SecretKind::Address,
    ),
    ("model_providers.NAME.oauth.device_url", SecretKind::Address),
    ("model_providers.NAME.auth.args", SecretKind::Words),
    ("mcp_servers.NAME.args", SecretKind::Words),
    ("mcp_servers.NAME.env", SecretKind::All),
    ("mcp_servers.NAME.env_vars", SecretKind::Words),
    ("mcp_servers.NAME.env_vars.name", SecretKind::No),
    ("mcp_servers.NAME.env_vars.source", SecretKind::No),
    ("mcp_servers.NAME.url", SecretKind::Address),
    ("mcp_servers.NAME.http_headers", SecretKind::All),
    ("mcp_servers.NAME.http_headers_helper", SecretKind::All),
    ("mcp_servers.NAME.oauth.client_secret", SecretKind::All),
    ("mcp_servers.NAME.oauth.callback_url", SecretKind::Address),
    ("mcp_servers.NAME.oauth_resource", SecretKind::Address),
    ("shell_environment_policy.set", SecretKind::All),
    ("store.address", SecretKind::All),
    // Its keys are paths, which may contain any word.
    ("projects", SecretKind::No),
];

/// Parts of a secret's name, in lower case and without `_` and `-`.
const NAMES: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "authorization",
    "bearer",
    "cookie",
    "header",
    "environment",
];

/// Names too short to be searched for inside others: a secret's name ends with one as a whole word.
const WHOLE_NAMES: &[&str] = &["env", "auth", "key", "keys", "jwt", "pwd", "pin"];

/// Suffixes of keys that hold the name of an environment variable, not its value.
const VARIABLES: &[&str] = &["env_var", "env_vars", "env_key"];

/// Key of a table from header names to environment variables.
const VARIABLES_OF_HEADERS: &str = "env_http_headers";

/// Redacts values that may be secrets.
fn redact(config: &mut Table) {
    visit_secrets(
        config,
        &mut Vec::new(),
        &mut |_, value, secret| match secret {
            SecretKind::All => *value = REDACTED.into(),
            SecretKind::Address => {
                if let Value::String(address) = value {
                    redact_address(address);
                }
            }
            SecretKind::Words => redact_words(value),
            SecretKind::No | SecretKind::ByName => {}
        },
    );
}

/// Returns a table with its secrets redacted.
pub(crate) fn without_secrets(table: &Table) -> Table {
    let mut table = table.clone();
    redact(&mut table);
    table
}

/// Converts a table to JSON, with secrets redacted.
pub(crate) fn redacted_json(table: &Table) -> serde_json::Value {
    to_json(&Value::Table(without_secrets(table)))
}

/// Returns the keys whose value is the placeholder.
pub(crate) fn placeholders(config: &Table) -> Vec<String> {
    let is_hidden = |it: &Value| it.as_str().is_some_and(|it| it.ends_with(REDACTED));
    let mut redacted_keys = Vec::new();
    visit_secrets(
        &mut config.clone(),
        &mut Vec::new(),
        &mut |path, value, _| {
            let is_list = value.as_array().is_some_and(|it| it.iter().any(is_hidden));
            if is_list || is_hidden(value) {
                redacted_keys.push(path.join("."));
            }
        },
    );
    redacted_keys
}

/// Visits each value that may be a secret, and each list of arguments that may contain one.
fn visit_secrets(
    table: &mut Table,
    path: &mut Vec<String>,
    visit: &mut impl FnMut(&[String], &mut Value, SecretKind),
) {
    for (name, value) in table {
        path.push(name.clone());
        visit_value(path, value, visit);
        path.pop();
    }
}

fn visit_value(
    path: &mut Vec<String>,
    value: &mut Value,
    visit: &mut impl FnMut(&[String], &mut Value, SecretKind),
) {
    let secret = secret(path);
    match value {
        _ if secret == SecretKind::No => {}
        Value::Table(inner) => visit_secrets(inner, path, visit),
        Value::Boolean(_) | Value::Datetime(_) => {}
        Value::Array(values) if matches!(secret, SecretKind::ByName | SecretKind::Words) => {
            let inner = |it: &&mut Value| it.is_table() || it.is_array();
            for value in values.iter_mut().filter(inner) {
                visit_value(path, value, visit);
            }
            visit(path, value, SecretKind::Words);
        }
        Value::String(text) if secret == SecretKind::ByName => {
            if text.contains("://") {
                visit(path, value, SecretKind::Address);
            }
        }
        _ if secret == SecretKind::ByName => {}
        Value::Integer(_) | Value::Float(_) if is_count(path) => {}
        _ => visit(path, value, secret),
    }
}

/// Returns how the value at a path may be a secret.
fn secret(path: &[String]) -> SecretKind {
    let above = (1..=path.len()).rev().map(|end| &path[..end]);
    let mut listed_secrets = above.clone().filter_map(listed);
    if let Some(secret) = listed_secrets.next() {
        return secret;
    }
    let mut known = above.filter_map(|it| Some((it.len(), keys::known(it)?)));
    let unknown_part = match known.find(|(_, it)| it.kind != Kind::ClientOwned) {
        // Below a known table, unknown names decide; those in the table's own path are the user's
        // choice.
        Some((depth, key)) if key.kind == Kind::Table => &path[depth..],
        Some(_) => return SecretKind::No,
        None => path,
    };
    let unknown_part = match unknown_part {
        [above @ .., _] if above.last().is_some_and(|it| it == VARIABLES_OF_HEADERS) => {
            &above[..above.len() - 1]
        }
        [above @ .., last] if VARIABLES.iter().any(|end| last.ends_with(end)) => above,
        all => all,
    };
    match unknown_part.iter().any(|it| names_secret(it)) {
        true => SecretKind::All,
        false => SecretKind::ByName,
    }
}

fn listed(path: &[String]) -> Option<SecretKind> {
    let mut listed = KNOWN_SECRETS.iter();
    let (_, secret) = listed.find(|(pattern, _)| keys::matches_pattern(pattern, path))?;
    Some(*secret)
}

/// Whether a number is a count of tokens: only its own name looks like a secret.
fn is_count(path: &[String]) -> bool {
    path.split_last().is_some_and(|(last, above)| {
        last.to_lowercase().contains("token") && secret(above) == SecretKind::ByName
    })
}

fn names_secret(name: &str) -> bool {
    let name = name.to_lowercase();
    let words = || name.split(|it: char| !it.is_alphanumeric());
    let last = words().rfind(|it| !it.is_empty()).unwrap_or_default();
    let plain: String = words().collect();
    WHOLE_NAMES.contains(&last) || NAMES.iter().any(|it| plain.contains(it))
}

/// Redacts a URL's query, and everything after the scheme if it may contain a user.
fn redact_address(address: &mut String) {
    let secret = match address.contains('@') {
        true => address.find("://").map(|at| at + "://".len()).or(Some(0)),
        false => address.find(['?', '#']),
    };
    if let Some(at) = secret {
        address.truncate(at);
        address.push_str(REDACTED);
    }
}

/// Redacts the argument that follows a secret's name: after `=` or `:` in the same one, else the
/// next one. Also redacts the password after a user's name.
fn redact_words(words: &mut Value) {
    let Value::Array(words) = words else {
        *words = REDACTED.into();
        return;
    };
    let mut redacts_next = false;
    let mut is_user = false;
    for word in words {
        let Value::String(text) = word else {
            continue;
        };
        if std::mem::take(&mut redacts_next) {
            *text = REDACTED.to_owned();
        } else if let Some(at) = text
            .find(['=', ':'])
            .filter(|it| names_secret(&text[..*it]))
        {
            text.truncate(at + 1);
            text.push_str(REDACTED);
        } else if let Some(at) = text.find(':').filter(|_| is_user) {
            text.truncate(at + 1);
            text.push_str(REDACTED);
        } else if text.contains("://") {
            redact_address(text);
        } else {
            redacts_next = text.starts_with('-') && names_secret(text);
        }
        is_user = matches!(text.as_str(), "-u" | "--user");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        text.parse().expect("TOML")
    }

    #[test]
    fn keys_are_hidden_and_their_names_are_not() {
        let mut config = table(
            "model = 'm'\n[model_providers.a]\nenv_key = 'A'\n\
             experimental_bearer_token = 'sekret'\nhttp_headers = { Authorization = 'sekret' }\n\
             query_params = 'sekret'\n",
        );
        redact(&mut config);
        let expected = table(
            "model = 'm'\n[model_providers.a]\nenv_key = 'A'\n\
             experimental_bearer_token = '…'\nhttp_headers = { Authorization = '…' }\n\
             query_params = '…'\n",
        );
        assert_eq!(config, expected);
    }

    /// Checks that redacted values are recognised as placeholders, and that values that are shown
    /// are not.
    #[test]
    fn secrets_are_redacted_by_key_and_by_name() {
        let unchanged = |line: &'static str| (line, line);
        for (line, expected) in [
            (
                "mcp_servers.x.env.HOME = 'sekret'",
                "mcp_servers.x.env.HOME = '…'",
            ),
            (
                "mcp_servers.x.headers = { X = 'sekret' }",
                "mcp_servers.x.headers = { X = '…' }",
            ),
            (
                "mcp_servers.x.http_headers.X = 'sekret'",
                "mcp_servers.x.http_headers.X = '…'",
            ),
            ("github_token = 'sekret'", "github_token = '…'"),
            ("a.API-KEY = 'sekret'", "a.API-KEY = '…'"),
            ("a.clientSecret = 'sekret'", "a.clientSecret = '…'"),
            (
                "a = [{ password = 'sekret', user = 'me' }]",
                "a = [{ password = '…', user = 'me' }]",
            ),
            ("passwords = ['sekret', 'sekret']", "passwords = '…'"),
            ("password = 1234", "password = '…'"),
            (
                "shell_environment_policy.set.A = 'sekret'",
                "shell_environment_policy.set.A = '…'",
            ),
            (
                "model_providers.a.api_key = 'sekret'",
                "model_providers.a.api_key = '…'",
            ),
            (
                "model_providers.a.auth.args = ['--token', 'sekret', '-v']",
                "model_providers.a.auth.args = ['--token', '…', '-v']",
            ),
            (
                "mcp_servers.x.args = ['-y', '--api-key=sekret']",
                "mcp_servers.x.args = ['-y', '--api-key=…']",
            ),
            (
                "mcp_servers.x.args = ['-H', 'Authorization: sekret']",
                "mcp_servers.x.args = ['-H', 'Authorization:…']",
            ),
            (
                "mcp_servers.x.url = 'https://h/mcp?k=sekret'",
                "mcp_servers.x.url = 'https://h/mcp…'",
            ),
            ("tui.token = 'sekret'", "tui.token = '…'"),
            ("a.OPENAI_KEY = 'sekret'", "a.OPENAI_KEY = '…'"),
            ("a.session-jwt = 'sekret'", "a.session-jwt = '…'"),
            (
                "a.args = ['-u', 'me:sekret', 'a:b']",
                "a.args = ['-u', 'me:…', 'a:b']",
            ),
            (
                "a.args = [['--token', 'sekret'], 'x']",
                "a.args = [['--token', '…'], 'x']",
            ),
            (
                "a.args = ['--token', 'sekret', { b = 'c' }]",
                "a.args = ['--token', '…', { b = 'c' }]",
            ),
            (
                "a = [{ x = 1 }, [{ password = 'sekret' }]]",
                "a = [{ x = 1 }, [{ password = '…' }]]",
            ),
            (
                "a.args = ['-u', 'API_KEY=sekret:sekret']",
                "a.args = ['-u', 'API_KEY=…']",
            ),
            (
                "mcp_servers.x.env_vars.GITHUB_TOKEN = 'sekret'",
                "mcp_servers.x.env_vars.GITHUB_TOKEN = '…'",
            ),
            ("mcp_servers.x.env = 'sekret'", "mcp_servers.x.env = '…'"),
            (
                "mcp_servers.x.bearer_token = 'sekret'",
                "mcp_servers.x.bearer_token = '…'",
            ),
            (
                "mcp_servers.x.http_headers_helper = 'get sekret'",
                "mcp_servers.x.http_headers_helper = '…'",
            ),
            (
                "mcp_servers.x.oauth = { client_id = 'a', client_secret = 'sekret' }",
                "mcp_servers.x.oauth = { client_id = 'a', client_secret = '…' }",
            ),
            (
                "mcp_servers.x.args = [['--token', 'sekret'], 'x']",
                "mcp_servers.x.args = [['--token', '…'], 'x']",
            ),
            (
                "mcp_servers.x.url = 'https://me:sekret@h/mcp'",
                "mcp_servers.x.url = 'https://…'",
            ),
            (
                "mcp_servers.x.env.my_env_key = 'sekret'",
                "mcp_servers.x.env.my_env_key = '…'",
            ),
            (
                "mcp_servers.dev_env_key.env.A = 'sekret'",
                "mcp_servers.dev_env_key.env.A = '…'",
            ),
            unchanged(
                "a = { bearer_token_env_var = 'A', env_http_headers = { Authorization = 'A' } }",
            ),
            unchanged(
                "mcp_servers.x = { bearer_token_env_var = 'A', env_http_headers = { B = 'C' } }",
            ),
            unchanged("mcp_servers.x.env_vars = ['GITHUB_TOKEN', { name = 'API_KEY' }]"),
            unchanged("mcp_servers.my_token.tools.get_token.approval_mode = 'prompt'"),
            unchanged("a.keyboard = 'qwerty'"),
            unchanged("a.args = ['-u', 'me', 'a:b']"),
            unchanged(
                "mcp_servers.x = { command = 'npx', args = ['-y', 'it'], url = 'https://h/mcp' }",
            ),
            unchanged(
                "model_providers.my-token = { env_key = 'A', env_http_headers = { X = 'A' } }",
            ),
            unchanged(
                "model_providers.a.auth = { command = 'pass', args = ['show', 'vendor/key'] }",
            ),
            unchanged("model_providers.a.max_output_tokens = 5"),
            unchanged("budget.turn.tokens = 5"),
            unchanged("tool_output_token_limit = 5"),
            unchanged("use_api_key = true"),
            unchanged("projects.'/home/me/token'.trust_level = 'trusted'"),
            unchanged("profiles.secret.model = 'm'"),
        ] {
            let mut config = table(line);
            assert_eq!(placeholders(&config), Vec::<String>::new(), "{line}");
            redact(&mut config);
            assert_eq!(config, table(expected), "{line}");
            let is_hidden = line != expected;
            assert_eq!(
                placeholders(&config).len(),
                usize::from(is_hidden),
                "{line}"
            );
        }
    }

    #[test]
    fn keys_in_addresses_are_hidden() {
        for (address, expected) in [
            ("http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1"),
            ("http://127.0.0.1:9/v1?key=sekret", "http://127.0.0.1:9/v1…"),
            ("http://127.0.0.1:9/v1#sekret", "http://127.0.0.1:9/v1…"),
            ("http://me:sekret@127.0.0.1:9/v1", "http://…"),
            ("http://127.0.0.1:9/?a=b@sekret", "http://…"),
            ("me:sekret@127.0.0.1", "…"),
        ] {
            let section = format!("[model_providers.a]\nbase_url = '{address}'\n");
            let mut config = table(&section);
            redact(&mut config);
            let redacted = &config["model_providers"]["a"]["base_url"];
            assert_eq!(redacted.as_str(), Some(expected));
        }
    }
}
