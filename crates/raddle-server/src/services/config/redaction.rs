//! What of the configuration is not shown, because it may be a secret, and where that is.

use toml::{Table, Value};

use super::keys::{self, Kind};

/// In place of what is not shown.
const REDACTED: &str = "…";

/// How a value may be a secret.
#[derive(Clone, Copy, Debug, PartialEq)]
enum SecretKind {
    /// It is none, nor is anything below it.
    No,
    /// All of it, or of each value below it.
    All,
    /// An address, which may name a user or have a key in its query.
    Address,
    /// A list of words of a command line, some of which may be secrets.
    Words,
    /// Nobody knows what it is for: its name tells, or that of something above it.
    ByName,
}

/// The secrets among the keys that are known, and what is below such keys; all others of them are shown. A part in
/// capitals stands for any name.
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
    // Its keys are paths, in which any word may be.
    ("projects", SecretKind::No),
];

/// What the name of a secret has in it, in small letters and without `_` and `-`.
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

/// Words that are too short to be looked for inside others: a name ends with one.
const WHOLE_NAMES: &[&str] = &["env", "auth", "key", "keys", "jwt", "pwd", "pin"];

/// How names end under which stands what a variable is called, and not what is in it.
const VARIABLES: &[&str] = &["env_var", "env_vars", "env_key"];

/// Under this, in tables by the names of headers.
const VARIABLES_OF_HEADERS: &str = "env_http_headers";

/// Hides what may be a secret.
pub(super) fn hide(config: &mut Table) {
    each(
        config,
        &mut Vec::new(),
        &mut |_, value, secret| match secret {
            SecretKind::All => *value = REDACTED.into(),
            SecretKind::Address => {
                if let Value::String(address) = value {
                    hide_in_address(address);
                }
            }
            SecretKind::Words => hide_words(value),
            SecretKind::No | SecretKind::ByName => {}
        },
    );
}

/// The keys under which stands what is shown in place of a secret, and not the secret.
pub(super) fn stand_ins(config: &Table) -> Vec<String> {
    let is_hidden = |it: &Value| it.as_str().is_some_and(|it| it.ends_with(REDACTED));
    let mut found = Vec::new();
    each(
        &mut config.clone(),
        &mut Vec::new(),
        &mut |path, value, _| {
            let is_list = value.as_array().is_some_and(|it| it.iter().any(is_hidden));
            if is_list || is_hidden(value) {
                found.push(path.join("."));
            }
        },
    );
    found
}

/// Goes to each value that may be a secret, or a list of words of which some may.
fn each(
    table: &mut Table,
    path: &mut Vec<String>,
    visit: &mut impl FnMut(&[String], &mut Value, SecretKind),
) {
    for (name, value) in table {
        path.push(name.clone());
        visit_one(path, value, visit);
        path.pop();
    }
}

fn visit_one(
    path: &mut Vec<String>,
    value: &mut Value,
    visit: &mut impl FnMut(&[String], &mut Value, SecretKind),
) {
    let secret = secret(path);
    match value {
        _ if secret == SecretKind::No => {}
        Value::Table(inner) => each(inner, path, visit),
        Value::Boolean(_) | Value::Datetime(_) => {}
        Value::Array(values) if secret == SecretKind::ByName => {
            let inner = |it: &&mut Value| it.is_table() || it.is_array();
            for value in values.iter_mut().filter(inner) {
                visit_one(path, value, visit);
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

/// How what is at a place may be a secret.
fn secret(path: &[String]) -> SecretKind {
    let above = (1..=path.len()).rev().map(|end| &path[..end]);
    let mut listed = above.clone().filter_map(listed);
    if let Some(secret) = listed.next() {
        return secret;
    }
    let mut known = above.filter_map(|it| Some((it.len(), keys::known(it)?)));
    let free = match known.find(|(_, it)| it.kind != Kind::ClientOwned) {
        // Below a table that is known, names that are not may say something; those in its own path are people's choice.
        Some((depth, key)) if key.kind == Kind::Table => &path[depth..],
        Some(_) => return SecretKind::No,
        None => path,
    };
    let free = match free {
        [above @ .., _] if above.last().is_some_and(|it| it == VARIABLES_OF_HEADERS) => {
            &above[..above.len() - 1]
        }
        [above @ .., last] if VARIABLES.iter().any(|end| last.ends_with(end)) => above,
        all => all,
    };
    match free.iter().any(|it| names_secret(it)) {
        true => SecretKind::All,
        false => SecretKind::ByName,
    }
}

fn listed(path: &[String]) -> Option<SecretKind> {
    let mut listed = KNOWN_SECRETS.iter();
    let (_, secret) = listed.find(|(pattern, _)| keys::is_meant(pattern, path))?;
    Some(*secret)
}

/// Whether a number is one of tokens, which its own name alone made look like a secret.
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

/// Hides an address's query, and all after the scheme if it may name a user.
fn hide_in_address(address: &mut String) {
    let secret = match address.contains('@') {
        true => address.find("://").map(|at| at + "://".len()).or(Some(0)),
        false => address.find(['?', '#']),
    };
    if let Some(at) = secret {
        address.truncate(at);
        address.push_str(REDACTED);
    }
}

/// Hides of words what stands behind the name of a secret: in the same one after `=` or `:`, or else in the next one;
/// and what stands behind that of a user.
fn hide_words(words: &mut Value) {
    let Value::Array(words) = words else {
        *words = REDACTED.into();
        return;
    };
    let mut is_next = false;
    let mut is_user = false;
    for word in words {
        let Value::String(text) = word else {
            continue;
        };
        if std::mem::take(&mut is_next) {
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
            hide_in_address(text);
        } else {
            is_next = text.starts_with('-') && names_secret(text);
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
        hide(&mut config);
        let wanted = table(
            "model = 'm'\n[model_providers.a]\nenv_key = 'A'\n\
             experimental_bearer_token = '…'\nhttp_headers = { Authorization = '…' }\n\
             query_params = '…'\n",
        );
        assert_eq!(config, wanted);
    }

    /// What is hidden is also known for a stand-in when it comes back, and what is shown is not.
    #[test]
    fn places_of_secrets() {
        let stays = |line: &'static str| (line, line);
        for (line, wanted) in [
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
            (
                "mcp_servers.x.env.my_env_key = 'sekret'",
                "mcp_servers.x.env.my_env_key = '…'",
            ),
            (
                "mcp_servers.dev_env_key.env.A = 'sekret'",
                "mcp_servers.dev_env_key.env.A = '…'",
            ),
            stays("a = { bearer_token_env_var = 'A', env_http_headers = { Authorization = 'A' } }"),
            stays("a.keyboard = 'qwerty'"),
            stays("a.args = ['-u', 'me', 'a:b']"),
            stays(
                "mcp_servers.x = { command = 'npx', args = ['-y', 'it'], url = 'https://h/mcp' }",
            ),
            stays("model_providers.my-token = { env_key = 'A', env_http_headers = { X = 'A' } }"),
            stays("model_providers.a.auth = { command = 'pass', args = ['show', 'vendor/key'] }"),
            stays("model_providers.a.max_output_tokens = 5"),
            stays("budget.turn.tokens = 5"),
            stays("tool_output_token_limit = 5"),
            stays("use_api_key = true"),
            stays("projects.'/home/me/token'.trust_level = 'trusted'"),
            stays("profiles.secret.model = 'm'"),
        ] {
            let mut config = table(line);
            assert_eq!(stand_ins(&config), Vec::<String>::new(), "{line}");
            hide(&mut config);
            assert_eq!(config, table(wanted), "{line}");
            let is_hidden = line != wanted;
            assert_eq!(stand_ins(&config).len(), usize::from(is_hidden), "{line}");
        }
    }

    #[test]
    fn keys_in_addresses_are_hidden() {
        for (address, wanted) in [
            ("http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1"),
            ("http://127.0.0.1:9/v1?key=sekret", "http://127.0.0.1:9/v1…"),
            ("http://127.0.0.1:9/v1#sekret", "http://127.0.0.1:9/v1…"),
            ("http://me:sekret@127.0.0.1:9/v1", "http://…"),
            ("http://127.0.0.1:9/?a=b@sekret", "http://…"),
            ("me:sekret@127.0.0.1", "…"),
        ] {
            let section = format!("[model_providers.a]\nbase_url = '{address}'\n");
            let mut config = table(&section);
            hide(&mut config);
            let shown = &config["model_providers"]["a"]["base_url"];
            assert_eq!(shown.as_str(), Some(wanted));
        }
    }
}
