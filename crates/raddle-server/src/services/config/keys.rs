//! The keys of the configuration: what each must be, what it says, and what holds without it. The checks, the schema
//! and the page of the configuration are made from this one table.

use super::approval;
use super::layers;
use super::suggestions::nearest;

/// A key, or a table of keys.
#[derive(Debug)]
pub(super) struct ConfigKey {
    /// Its dotted path. A part in capitals stands for any name.
    pub(super) path: &'static str,
    pub(super) kind: Kind,
    /// What holds without it.
    pub(super) usual: &'static str,
    pub(super) says: &'static str,
}

/// What a value must be.
#[derive(Debug, PartialEq)]
pub(super) enum Kind {
    Text,
    OneOf(&'static [&'static str]),
    /// When people are asked: a word, or a table that says it by kinds of questions.
    Approval,
    /// A number that is not negative.
    Whole,
    /// Money, which may have a part behind the point and is not negative.
    Dollars,
    Flag,
    Texts,
    /// A list of tables; who reads it says what is wrong in one.
    Tables,
    /// A table of texts, with names that are free.
    TextTable,
    /// A table whose keys are further keys.
    Table,
    /// Read by clients, and kept for them as it is.
    ClientOwned,
}

impl Kind {
    /// What a value must be, for people.
    pub(super) fn wanted(&self) -> String {
        match self {
            Self::Text => "a string".to_owned(),
            Self::OneOf(names) => format!("one of {}", names.join(", ")),
            Self::Approval => approval::EXPECTED_VALUE.to_owned(),
            Self::Whole => "a whole number".to_owned(),
            Self::Dollars => "a number of dollars".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Texts => "a list of strings".to_owned(),
            Self::Tables => "a list of tables".to_owned(),
            Self::TextTable => "a table of strings".to_owned(),
            Self::Table => "a table".to_owned(),
            Self::ClientOwned => "anything".to_owned(),
        }
    }

    fn fits(&self, value: &toml::Value) -> bool {
        match self {
            Self::Text => value.is_str(),
            Self::OneOf(names) => value.as_str().is_some_and(|it| names.contains(&it)),
            Self::Approval => approval::read(value).is_some(),
            Self::Whole => value.as_integer().is_some_and(|it| it >= 0),
            Self::Dollars => match value {
                toml::Value::Integer(it) => *it >= 0,
                toml::Value::Float(it) => it.is_finite() && *it >= 0.0,
                _ => false,
            },
            Self::Flag => value.is_bool(),
            Self::Texts => value
                .as_array()
                .is_some_and(|it| it.iter().all(toml::Value::is_str)),
            Self::Tables => value
                .as_array()
                .is_some_and(|it| it.iter().all(toml::Value::is_table)),
            Self::TextTable => value
                .as_table()
                .is_some_and(|it| it.values().all(toml::Value::is_str)),
            Self::Table => value.is_table(),
            Self::ClientOwned => true,
        }
    }
}

const fn key(path: &'static str, kind: Kind, usual: &'static str, says: &'static str) -> ConfigKey {
    ConfigKey {
        path,
        kind,
        usual,
        says,
    }
}

/// All of them, in the order of the page. A table stands before what is in it.
#[rustfmt::skip]
pub(super) const KEYS: &[ConfigKey] = &[
    key("model", Kind::Text, "none: a turn says what to set", "the model that threads begin with, as `PROVIDER/MODEL` or the name alone"),
    key("model_provider", Kind::Text, "the one that `model` names", "the provider that is asked"),
    key("review_model", Kind::Text, "`model`", "a further model that clients are shown, for reviews"),
    key("model_reasoning_effort", Kind::Text, "the vendor's own", "how long the model thinks: `low`, `medium`, `high`, or what the vendor knows beside these"),
    key("model_reasoning_summary", Kind::Text, "the vendor's own", "how the model's thinking is summed up: `auto`, `concise`, `detailed` or `none`"),
    key("model_context_window", Kind::Whole, "not known", "how many tokens the model can read at once"),
    key("model_auto_compact_token_limit", Kind::Whole, "nine tenths of `model_context_window`", "above how many tokens the history is condensed"),
    key("fallback", Kind::Texts, "nobody else is asked", "who is asked when the model fails, in order, each as `PROVIDER/MODEL`; at most 8"),
    key("budget", Kind::Table, "no limits", "what turns and threads may use"),
    key("budget.turn", Kind::Table, "no limit", "what each turn may use"),
    key("budget.turn.tokens", Kind::Whole, "no limit", "how many tokens calls of the model may read and write"),
    key("budget.turn.usd", Kind::Dollars, "no limit", "how many dollars calls of the model may cost"),
    key("budget.turn.seconds", Kind::Whole, "no limit", "how long it may take, whatever it waits for"),
    key("budget.turn.tool_calls", Kind::Whole, "no limit", "how many tools may be started"),
    key("budget.thread", Kind::Table, "no limit", "what all turns of a thread may use together"),
    key("budget.thread.tokens", Kind::Whole, "no limit", "how many tokens calls of the model may read and write"),
    key("budget.thread.usd", Kind::Dollars, "no limit", "how many dollars calls of the model may cost"),
    key("budget.thread.seconds", Kind::Whole, "no limit", "how long it may take, whatever it waits for"),
    key("budget.thread.tool_calls", Kind::Whole, "no limit", "how many tools may be started"),
    key("prices", Kind::Tables, "those that Raddle brings along", "what models cost, a `[[prices]]` each with `provider`, `model`, `input` and `output`"),
    key(approval::KEY, Kind::Approval, "`on-request`", "when people are asked: `untrusted` (before every command that is not known to be harmless), `on-request` (when the agent wants to go beyond its sandbox), `never`, or by kinds of questions"),
    key("approvals_reviewer", Kind::OneOf(&["user", "auto_review", "guardian_subagent"]), "`user`", "kept for clients, which say it for each thread"),
    key("sandbox_mode", Kind::OneOf(&["read-only", "workspace-write", "danger-full-access"]), "`read-only`", "what the agent's commands may write"),
    key("default_permissions", Kind::Text, "`sandbox_mode` decides", "the permission profile that threads begin with; it goes before a `sandbox_mode` that is not said in a stronger place"),
    key("permissions", Kind::Table, "", "permission profiles of your own beside `:read-only`, `:workspace` and `:danger-full-access`, see [policy](policy.md#permission-profiles)"),
    key("permissions.NAME", Kind::Table, "", "one profile"),
    key("permissions.NAME.extends", Kind::Text, "nothing", "the profile that it begins with"),
    key("permissions.NAME.description", Kind::Text, "nothing", "a line about it for people"),
    key("permissions.NAME.filesystem", Kind::TextTable, "what it extends", "`read` or `write` for `:root`, `:project_roots`, `:slash_tmp`, `:tmpdir` or an absolute path"),
    key("permissions.NAME.network", Kind::Table, "", "its network"),
    key("permissions.NAME.network.enabled", Kind::Flag, "what it extends, else false", "whether commands may use the network"),
    key("sandbox_accept_tier", Kind::OneOf(&["A", "B"]), "`A`", "with `B`, commands may write folders on machines where names in them cannot be protected"),
    key("sandbox_bwrap_path", Kind::Text, "the system's, if it is root's and in `/usr/bin`, `/bin` or `/usr/local/bin`", "the absolute path of another bubblewrap; `PATH` is never searched for it"),
    key("allow_login_shell", Kind::Flag, "false", "whether the agent may ask for a login shell, which reads your profile with the keys that are exported there; never outside its sandbox"),
    key("login_shell_path", Kind::Flag, "true", "whether commands find the programs of the `PATH` that your login shell sets; it is started once for that, and nothing else of it is read"),
    key("sandbox_workspace_write", Kind::Table, "", "more of the mode `workspace-write`"),
    key("sandbox_workspace_write.network_access", Kind::Flag, "false", "whether commands may use the network"),
    key("sandbox_workspace_write.writable_roots", Kind::Texts, "none", "absolute paths that may be written beside the workspace"),
    key("sandbox_workspace_write.exclude_slash_tmp", Kind::Flag, "false", "whether `/tmp` is not writable"),
    key("sandbox_workspace_write.exclude_tmpdir_env_var", Kind::Flag, "false", "whether the folder that `TMPDIR` names is not writable"),
    key("sandbox_network", Kind::Table, "every public host", "whom commands that may use the network can reach"),
    key("sandbox_network.allow", Kind::Texts, "none", "hosts like `example.com`, `*.example.org` or `git.example.net:8443`"),
    key("sandbox_network.deny", Kind::Texts, "none", "hosts that are denied although they are listed"),
    key("remote_clients_set_programs", Kind::Flag, "false", "whether clients other than the one that started the server on its stdin may write keys that name programs, where keys of models are read or sent, or what models cost"),
    key("model_providers", Kind::Table, "", "providers of models, each by a name of your own or that of a well-known one"),
    key("model_providers.NAME", Kind::Table, "", "one provider"),
    key("model_providers.NAME.name", Kind::Text, "", "its name for people; not used"),
    key("model_providers.NAME.base_url", Kind::Text, "that of the well-known provider of this name", "where its interface begins"),
    key("model_providers.NAME.wire_api", Kind::OneOf(&["responses", "chat", "messages", "gemini"]), "that of the well-known provider, else `responses`", "how it is spoken to"),
    key("model_providers.NAME.env_key", Kind::Text, "that of the well-known provider, else no key", "the environment variable that holds its key"),
    key("model_providers.NAME.env_key_instructions", Kind::Text, "nothing", "how to get a key, told when the variable is not set"),
    key("model_providers.NAME.key_file", Kind::Text, "", "the file that holds its key, from `/` or `~/` on"),
    key("model_providers.NAME.auth", Kind::Table, "", "a command that writes its key"),
    key("model_providers.NAME.auth.command", Kind::Text, "an error", "the program: its name, or its path from `/` on"),
    key("model_providers.NAME.auth.args", Kind::Texts, "none", "its arguments"),
    key("model_providers.NAME.auth.cwd", Kind::Text, "that of the user's `config.toml`", "the folder it starts in"),
    key("model_providers.NAME.auth.env_vars", Kind::Texts, "none", "environment variables that it gets beside `PATH`, `HOME` and the like"),
    key("model_providers.NAME.auth.timeout_ms", Kind::Whole, "5000", "how long it may take"),
    key("model_providers.NAME.auth.refresh_interval_ms", Kind::Whole, "300000", "how long its key is used; 0 for as long as the vendor takes it"),
    key("model_providers.NAME.experimental_bearer_token", Kind::Text, "", "the key itself; better not"),
    key("model_providers.NAME.oauth", Kind::Table, "nobody signs in", "pages to sign in"),
    key("model_providers.NAME.oauth.client_id", Kind::Text, "an error", "who we are to it"),
    key("model_providers.NAME.oauth.token_url", Kind::Text, "an error", "where tokens are given"),
    key("model_providers.NAME.oauth.authorize_url", Kind::Text, "no browser", "the page for browsers on this machine"),
    key("model_providers.NAME.oauth.device_url", Kind::Text, "no codes", "where codes for other devices are given"),
    key("model_providers.NAME.oauth.scopes", Kind::Texts, "none", "what the tokens should be good for"),
    key("model_providers.NAME.oauth.redirect_port", Kind::Whole, "any that is free", "the port that a browser is sent back to"),
    key("model_providers.NAME.requires_openai_auth", Kind::Flag, "false", "whether clients should ask people to sign in"),
    key("model_providers.NAME.http_headers", Kind::TextTable, "none", "headers that every request has"),
    key("model_providers.NAME.env_http_headers", Kind::TextTable, "none", "the same, by the variables that hold the values"),
    key("model_providers.NAME.query_params", Kind::TextTable, "none", "what each address has in its query"),
    key("model_providers.NAME.max_output_tokens", Kind::Whole, "the vendor's bound", "the most tokens that an answer may have"),
    key("model_providers.NAME.request_max_retries", Kind::Whole, "4", "how often a call is made again that got no answer"),
    key("model_providers.NAME.stream_max_retries", Kind::Whole, "5", "how often a call is made again whose answer broke off"),
    key("model_providers.NAME.stream_idle_timeout_ms", Kind::Whole, "300000", "how long an answer may be silent"),
    key("model_providers.NAME.connect_timeout_ms", Kind::Whole, "20000", "how long a connection may take"),
    key("model_providers.NAME.total_timeout_ms", Kind::Whole, "3600000", "how long a whole answer may take"),
    key("profiles", Kind::Table, "", "further choices; their models are shown by `model/list`"),
    key("profiles.NAME", Kind::Table, "", "one choice"),
    key("profiles.NAME.model", Kind::Text, "", "its model"),
    key("profiles.NAME.model_provider", Kind::Text, "`model_provider`", "its provider"),
    kept("projects"),
    kept("check_for_update_on_startup"),
    kept("desktop"),
    kept("disable_paste_burst"),
    kept("features"),
    kept("file_opener"),
    kept("hide_agent_reasoning"),
    kept("history"),
    kept("notice"),
    kept("personality"),
    kept("plan_mode_reasoning_effort"),
    kept("service_tier"),
    kept("show_raw_agent_reasoning"),
    kept("tui"),
    kept("web_search"),
];

const fn kept(path: &'static str) -> ConfigKey {
    key(
        path,
        Kind::ClientOwned,
        "",
        "kept for clients as it is; not read",
    )
}

/// The keys that environment variables may say too: which model, and never what it may do, because programs take
/// variables from files of a workspace.
const ENVIRONMENT_KEYS: &[&str] = &[
    "model",
    "model_provider",
    "review_model",
    "model_reasoning_effort",
];

/// The keys that name what the server starts, where keys of models are read from or sent to, or what models cost, which
/// limits of money are counted by; with all that is below them. Some are read by other programs that share the file, or will be by later versions.
const GUARDED_KEYS: &[&str] = &[
    "allow_login_shell",
    "hooks",
    "login_shell_path",
    "mcp_servers",
    "model_providers",
    "notify",
    "prices",
    "remote_clients_set_programs",
    "sandbox_bwrap_path",
];

/// The flag that lets remote clients write those keys.
pub(super) const REMOTE_FLAG: &str = "remote_clients_set_programs";

/// A key of those that says something else in the one table than in the other.
pub(super) fn guarded_change(before: &toml::Table, after: &toml::Table) -> Option<&'static str> {
    let mut keys = GUARDED_KEYS.iter().copied();
    keys.find(|it| before.get(*it) != after.get(*it))
}

/// Each key that environment variables may say, with its variable.
pub(super) fn variables() -> impl Iterator<Item = (&'static str, String)> {
    let name = |key: &str| format!("RADDLE_{}", key.to_uppercase());
    ENVIRONMENT_KEYS.iter().map(move |it| (*it, name(it)))
}

/// What is known of a key.
pub(super) fn known(path: &[String]) -> Option<&'static ConfigKey> {
    KEYS.iter().find(|it| is_meant(it.path, path))
}

pub(super) fn is_meant(pattern: &str, path: &[String]) -> bool {
    let parts = pattern.split('.');
    parts.clone().count() == path.len()
        && parts.zip(path).all(|(part, it)| is_any(part) || part == it)
}

/// Whether a part of a path stands for any name.
pub(super) fn is_any(part: &str) -> bool {
    part.chars().all(|it| it.is_ascii_uppercase())
}

/// What is odd about a key, whatever it says: nobody reads it, or something above it.
pub(super) fn oddity(path: &[String]) -> Option<String> {
    for end in 1..=path.len() {
        match known(&path[..end]) {
            None => return Some(not_used(&path[..end])),
            // What is below is free.
            Some(key) if key.kind != Kind::Table => return None,
            Some(_) => {}
        }
    }
    None
}

/// What is odd about a layer, a sentence each.
#[derive(Debug, Default)]
pub(super) struct LayerProblems {
    /// Values that cannot be, in the order of [`KEYS`].
    pub(super) invalid: Vec<String>,
    /// Keys that nobody reads.
    pub(super) unused: Vec<String>,
}

pub(super) fn odd(layer: &toml::Table) -> LayerProblems {
    let (mut wrong, mut unused) = (Vec::new(), Vec::new());
    walk(layer, &mut Vec::new(), &mut |path, found| match found {
        KeyProblem::InvalidValue(at) => {
            let wanted = KEYS[at].kind.wanted();
            wrong.push((at, format!("{} must be {wanted}", place(path))));
        }
        KeyProblem::Unused => unused.push(not_used(path)),
    });
    wrong.sort_by_key(|(at, _)| *at);
    LayerProblems {
        invalid: wrong.into_iter().map(|(_, problem)| problem).collect(),
        unused,
    }
}

/// A table without its wrong values.
pub(super) fn without_wrong(table: &toml::Table) -> toml::Table {
    let mut wrong = Vec::new();
    walk(table, &mut Vec::new(), &mut |path, found| {
        if let KeyProblem::InvalidValue(_) = found {
            wrong.push(path.to_owned());
        }
    });
    let mut right = table.clone();
    for path in &wrong {
        layers::remove(&mut right, path);
    }
    right
}

/// The first unknown key among those of a request that bound something, with the valid ones. The reader of a key reports
/// a wrong value.
pub(super) fn odd_in_request(own: &toml::Table) -> Option<String> {
    let mut odd = None;
    walk(own, &mut Vec::new(), &mut |path, found| {
        let parents = &path[..path.len().saturating_sub(1)];
        let what = match found {
            KeyProblem::InvalidValue(at) if KEYS[at].kind == Kind::Table => {
                let names: Vec<&str> = names_in(path).collect();
                format!("{} must be a table of {}", place(path), names.join(", "))
            }
            KeyProblem::InvalidValue(_) => return,
            KeyProblem::Unused => {
                let names: Vec<&str> = names_in(parents).collect();
                format!("{}; write one of {}", not_used(path), names.join(", "))
            }
        };
        odd.get_or_insert(what);
    });
    odd
}

/// The names of all keys in a table that are not free.
fn names_in(table: &[String]) -> impl Iterator<Item = &'static str> {
    KEYS.iter().filter_map(move |it| {
        let (above, name) = it.path.rsplit_once('.').unwrap_or(("", it.path));
        let is_in = match table {
            [] => above.is_empty(),
            table => !above.is_empty() && is_meant(above, table),
        };
        (is_in && !is_any(name)).then_some(name)
    })
}

enum KeyProblem {
    /// The value of the key at this place of [`KEYS`] is none that can be.
    InvalidValue(usize),
    Unused,
}

fn walk(table: &toml::Table, path: &mut Vec<String>, tell: &mut impl FnMut(&[String], KeyProblem)) {
    for (name, value) in table {
        path.push(name.clone());
        match (KEYS.iter().position(|it| is_meant(it.path, path)), value) {
            (None, _) => tell(path, KeyProblem::Unused),
            (Some(at), value) if !KEYS[at].kind.fits(value) => {
                tell(path, KeyProblem::InvalidValue(at))
            }
            (Some(at), toml::Value::Table(inner)) if KEYS[at].kind == Kind::Table => {
                walk(inner, path, tell);
            }
            _ => {}
        }
        path.pop();
    }
}

/// That nobody reads a key, and which one may be meant.
fn not_used(path: &[String]) -> String {
    let meant = path
        .split_last()
        .and_then(|(last, parents)| nearest(last, names_in(parents)));
    let meant = meant.map(|it| format!(" (did you mean `{it}`?)"));
    format!(
        "{} is not used here{}",
        place(path),
        meant.unwrap_or_default()
    )
}

/// A key and the table it is in, for people.
fn place(path: &[String]) -> String {
    match path.split_last() {
        Some((last, [])) => format!("`{last}`"),
        Some((last, parents)) => format!("`{last}` under [{}]", dotted(parents)),
        None => "the whole".to_owned(),
    }
}

/// A path as it is written in TOML.
pub(super) fn dotted(path: &[String]) -> String {
    let parts = path.iter().map(|it| toml_edit::Key::new(it).to_string());
    parts.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_layer_is_said() {
        for (layer, wanted) in [
            ("model = 'm'\ntui.theme = 1\n", vec![]),
            (
                "sandbox_mode = 'open'\nmodel = 7\n",
                vec![
                    "`model` must be a string",
                    "`sandbox_mode` must be one of read-only, workspace-write, danger-full-access",
                ],
            ),
            (
                "modle = 'm'\n",
                vec!["`modle` is not used here (did you mean `model`?)"],
            ),
            ("hooks = []\n", vec!["`hooks` is not used here"]),
            (
                "[model_providers.a]\nname = 'A'\nbase_ulr = 'x'\nsupports_websockets = true\n\
                 [model_providers.b.auth]\ncommand = 'x'\nshell = true\n",
                vec![
                    "`base_ulr` under [model_providers.a] is not used here (did you mean `base_url`?)",
                    "`supports_websockets` under [model_providers.a] is not used here",
                    "`shell` under [model_providers.b.auth] is not used here",
                ],
            ),
            (
                "[model_providers.'a b']\nconnect_timeout_ms = -1\nauth = 'x'\n",
                vec![
                    "`auth` under [model_providers.\"a b\"] must be a table",
                    "`connect_timeout_ms` under [model_providers.\"a b\"] must be a whole number",
                ],
            ),
            (
                "[budget.turn]\nusd = 0.5\ntokens = 5\nseconds = -1\neuros = 5\n[budget.thread]\nusd = 'x'\n",
                vec![
                    "`seconds` under [budget.turn] must be a whole number",
                    "`usd` under [budget.thread] must be a number of dollars",
                    "`euros` under [budget.turn] is not used here",
                ],
            ),
            ("prices = 5\n", vec!["`prices` must be a list of tables"]),
            (
                "approval_policy = { granular = { sandbox_approval = true, rules = true, mcp_elicitations = true } }",
                vec![],
            ),
            (
                "[sandbox_workspace_write]\nnetwork = true\nwritable_roots = '/x'\n",
                vec![
                    "`writable_roots` under [sandbox_workspace_write] must be a list of strings",
                    "`network` under [sandbox_workspace_write] is not used here",
                ],
            ),
        ] {
            let table: toml::Table = layer.parse().expect("TOML");
            let LayerProblems {
                invalid: wrong,
                unused,
            } = odd(&table);
            assert_eq!([wrong, unused].concat(), wanted, "{layer}");
        }
    }

    #[test]
    fn the_table_is_sound() {
        for (at, key) in KEYS.iter().enumerate() {
            let same = KEYS.iter().filter(|it| it.path == key.path);
            assert_eq!(same.count(), 1, "{}", key.path);
            assert!(!key.says.is_empty(), "{}", key.path);
            if let Some((above, _)) = key.path.rsplit_once('.') {
                let above = KEYS[..at].iter().find(|it| it.path == above);
                assert_eq!(above.map(|it| &it.kind), Some(&Kind::Table), "{}", key.path);
            }
        }
        for (key, _) in variables() {
            let key = known(&[key.to_owned()]).expect("it is known");
            assert_eq!(key.kind, Kind::Text, "{}", key.path);
        }
    }

    #[test]
    fn the_page_of_the_configuration_has_the_same_table() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.md");
        let page = std::fs::read_to_string(page).expect("the page of the configuration");
        let mut table = String::new();
        let read = |it: &&ConfigKey| {
            !matches!(it.kind, Kind::ClientOwned)
                && !is_any(it.path.rsplit('.').next().unwrap_or(""))
        };
        for key in KEYS.iter().filter(read) {
            let ConfigKey {
                path,
                kind,
                usual,
                says,
            } = key;
            let wanted = kind.wanted();
            table.push_str(&format!("| `{path}` | {wanted} | {says} | {usual} |\n"));
        }
        assert!(
            page.contains(&format!("|\n{table}\n")),
            "write this there:\n{table}"
        );
        for key in KEYS.iter().filter(|it| it.kind == Kind::ClientOwned) {
            assert!(page.contains(&format!("`{}`", key.path)), "{}", key.path);
        }
        for (_, variable) in variables() {
            assert!(page.contains(&format!("`{variable}`")), "{variable}");
        }
    }
}
