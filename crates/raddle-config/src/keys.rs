//! The keys of the configuration: type, description and default of each. The checks, the schema and
//! the documentation page are generated from this one table.

use crate::suggestions::nearest;
use crate::{approval, layers};

/// A key, or a table of keys.
#[derive(Debug)]
pub(crate) struct ConfigKey {
    /// The dotted path. A part in capitals stands for any name.
    pub(crate) path: &'static str,
    pub(crate) kind: Kind,
    /// Description of the default.
    pub(crate) default_value: &'static str,
    pub(crate) description: &'static str,
}

/// Type of a value.
#[derive(Debug, PartialEq)]
pub(crate) enum Kind {
    Text,
    OneOf(&'static [&'static str]),
    /// When to ask the user: a word, or a table by kinds of questions.
    Approval,
    /// A number that is not negative.
    Whole,
    /// An amount of money, which may have decimals and is not negative.
    Dollars,
    /// A duration, which may have decimals and is positive.
    Seconds,
    Flag,
    Texts,
    /// A list of names of environment variables, each alone or in a table with its source.
    Variables,
    /// A list of tables; the code that reads it checks its entries.
    Tables,
    /// A table of texts with free names.
    TextTable,
    /// Access levels by path; the code that reads it checks its entries.
    AccessTable,
    /// A table whose keys are further keys.
    Table,
    /// Stored for clients unchanged; the server does not read it.
    ClientOwned,
}

impl Kind {
    /// Returns the expected type of a value, for people.
    pub(crate) fn expected(&self) -> String {
        match self {
            Self::Text => "a string".to_owned(),
            Self::OneOf(names) => format!("one of {}", names.join(", ")),
            Self::Approval => approval::EXPECTED_VALUE.to_owned(),
            Self::Whole => "a whole number".to_owned(),
            Self::Dollars => "a number of dollars".to_owned(),
            Self::Seconds => "a number of seconds above 0".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Texts => "a list of strings".to_owned(),
            Self::Variables => {
                "a list of strings, or of tables with `name` and a `source` of local or remote"
                    .to_owned()
            }
            Self::Tables => "a list of tables".to_owned(),
            Self::TextTable => "a table of strings".to_owned(),
            Self::AccessTable => "a table of access levels".to_owned(),
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
            Self::Seconds => match value {
                toml::Value::Integer(it) => *it > 0,
                toml::Value::Float(it) => it.is_finite() && *it > 0.0,
                _ => false,
            },
            Self::Flag => value.is_bool(),
            Self::Texts => value
                .as_array()
                .is_some_and(|it| it.iter().all(toml::Value::is_str)),
            Self::Variables => value
                .as_array()
                .is_some_and(|it| it.iter().all(is_variable)),
            Self::Tables => value
                .as_array()
                .is_some_and(|it| it.iter().all(toml::Value::is_table)),
            Self::TextTable => value
                .as_table()
                .is_some_and(|it| it.values().all(toml::Value::is_str)),
            // A level that is left out as invalid would leave a wider profile.
            Self::Table | Self::AccessTable => value.is_table(),
            Self::ClientOwned => true,
        }
    }
}

/// Whether a value names an environment variable, alone or with its source.
fn is_variable(value: &toml::Value) -> bool {
    let toml::Value::Table(table) = value else {
        return value.is_str();
    };
    let has_source = |it: &toml::Value| matches!(it.as_str(), Some("local" | "remote"));
    table.get("name").is_some_and(toml::Value::is_str) && table.get("source").is_none_or(has_source)
}

const fn key(
    path: &'static str,
    kind: Kind,
    default_value: &'static str,
    description: &'static str,
) -> ConfigKey {
    ConfigKey {
        path,
        kind,
        default_value,
        description,
    }
}

/// All keys, in the order of the documentation page. A table precedes its keys.
#[rustfmt::skip]
pub(crate) const KEYS: &[ConfigKey] = &[
    key("model", Kind::Text, "none: a turn fails and says what to set", "the model of new threads, as `PROVIDER/MODEL` or its name alone"),
    key("model_provider", Kind::Text, "the provider that `model` names", "the provider to call"),
    key("review_model", Kind::Text, "`model`", "a further model for clients to offer, for reviews"),
    key("model_reasoning_effort", Kind::Text, "the vendor's default", "the reasoning effort: `low`, `medium`, `high`, or another value of the vendor"),
    key("model_reasoning_summary", Kind::Text, "the vendor's default", "the summary of the model's reasoning: `auto`, `concise`, `detailed` or `none`"),
    key("model_context_window", Kind::Whole, "unknown", "the context window of the model, in tokens"),
    key("model_auto_compact_token_limit", Kind::Whole, "nine tenths of `model_context_window`", "the number of tokens above which the history is compacted"),
    key("fallback", Kind::Texts, "no fallback", "models to call when the model fails, in order, each as `PROVIDER/MODEL`; at most 8"),
    key("budget", Kind::Table, "no limits", "limits on what turns and threads may spend"),
    key("budget.turn", Kind::Table, "no limit", "limits of each turn"),
    key("budget.turn.tokens", Kind::Whole, "no limit", "input and output tokens of model calls"),
    key("budget.turn.usd", Kind::Dollars, "no limit", "cost of model calls in dollars"),
    key("budget.turn.seconds", Kind::Whole, "no limit", "elapsed time, including waiting"),
    key("budget.turn.tool_calls", Kind::Whole, "no limit", "number of tool calls"),
    key("budget.thread", Kind::Table, "no limit", "limits of all turns of a thread together"),
    key("budget.thread.tokens", Kind::Whole, "no limit", "input and output tokens of model calls"),
    key("budget.thread.usd", Kind::Dollars, "no limit", "cost of model calls in dollars"),
    key("budget.thread.seconds", Kind::Whole, "no limit", "elapsed time, including waiting"),
    key("budget.thread.tool_calls", Kind::Whole, "no limit", "number of tool calls"),
    key("prices", Kind::Tables, "the built-in prices", "prices of models, a `[[prices]]` each with `provider`, `model`, `input` and `output`"),
    key(approval::APPROVAL_POLICY, Kind::Approval, "`on-request`", "when to ask the user: `untrusted` (before every command that is not known to be harmless), `on-request` (when the agent wants to go beyond its sandbox), `never`, or by kinds of questions"),
    key("approvals_reviewer", Kind::OneOf(&["user", "auto_review", "guardian_subagent"]), "`user`", "stored for clients, which set it for each thread"),
    key("sandbox_mode", Kind::OneOf(&["read-only", "workspace-write", "danger-full-access"]), "`read-only`", "what the agent's commands may write"),
    key("default_permissions", Kind::Text, "`sandbox_mode` decides", "the permission profile of new threads; it takes precedence unless a stronger layer sets `sandbox_mode`"),
    key("permissions", Kind::Table, "", "permission profiles beside `:read-only`, `:workspace` and `:danger-full-access`, see [policy](policy.md#permission-profiles)"),
    key("permissions.NAME", Kind::Table, "", "one profile"),
    key("permissions.NAME.extends", Kind::Text, "none", "the profile that it extends"),
    key("permissions.NAME.description", Kind::Text, "none", "a description for people"),
    key("permissions.NAME.filesystem", Kind::AccessTable, "that of the extended profile", "`read` or `write` for `:root`, `:project_roots`, `:slash_tmp`, `:tmpdir` or an absolute path; `deny` for `:root`; `read` for `:minimal`"),
    key("permissions.NAME.network", Kind::Table, "", "network access"),
    key("permissions.NAME.network.enabled", Kind::Flag, "that of the extended profile, else false", "whether commands may use the network"),
    key("sandbox_accept_tier", Kind::OneOf(&["A", "B"]), "`A`", "with `B`, commands may write folders even on machines that cannot protect names in them"),
    key("sandbox_bwrap_path", Kind::Text, "the system's, if root owns it and it is in `/usr/bin`, `/bin` or `/usr/local/bin`", "the absolute path of another bubblewrap; `PATH` is never searched for it"),
    key("checkpoints", Kind::Table, "", "checkpoints of the files that turns change, see [diffs](diffs.md)"),
    key("checkpoints.enabled", Kind::Flag, "true", "whether the server keeps copies of the workspace's files, readable by you alone, to show what commands changed and to undo it"),
    key("allow_login_shell", Kind::Flag, "false", "whether the agent may use a login shell, which reads your profile with the keys that it exports; never outside its sandbox"),
    key("login_shell_path", Kind::Flag, "true", "whether the `PATH` of commands includes that of your login shell; the server starts the shell once for that, and reads nothing else from it"),
    key(VARIABLES_TABLE, Kind::Table, "", "environment variables of the agent's commands"),
    key("shell_environment_policy.set", Kind::TextTable, "none", "variables to set, by name, see [policy](policy.md#variables-of-commands)"),
    key("sandbox_workspace_write", Kind::Table, "", "options of the mode `workspace-write`"),
    key("sandbox_workspace_write.network_access", Kind::Flag, "false", "whether commands may use the network"),
    key("sandbox_workspace_write.writable_roots", Kind::Texts, "none", "absolute paths that commands may write beside the workspace"),
    key("sandbox_workspace_write.exclude_slash_tmp", Kind::Flag, "false", "whether `/tmp` is not writable"),
    key("sandbox_workspace_write.exclude_tmpdir_env_var", Kind::Flag, "false", "whether the folder that `TMPDIR` names is not writable"),
    key("sandbox_network", Kind::Table, "every public host", "the hosts that commands with network access may reach"),
    key("sandbox_network.allow", Kind::Texts, "none", "hosts like `example.com`, `*.example.org` or `git.example.net:8443`"),
    key("sandbox_network.deny", Kind::Texts, "none", "hosts that are denied even if `allow` lists them"),
    key("remote_clients_set_programs", Kind::Flag, "false", "whether clients other than the one on the server's stdin may write keys that name programs, the store, sources or destinations of model keys, or prices"),
    key("model_providers", Kind::Table, "", "model providers, each by a name of your own or that of a preset"),
    key("model_providers.NAME", Kind::Table, "", "one provider"),
    key("model_providers.NAME.name", Kind::Text, "", "its name for people; not used"),
    key("model_providers.NAME.base_url", Kind::Text, "that of the preset of this name", "the base URL of its interface"),
    key("model_providers.NAME.wire_api", Kind::OneOf(&["responses", "chat", "messages", "gemini"]), "that of the preset, else `responses`", "its wire protocol"),
    key("model_providers.NAME.env_key", Kind::Text, "that of the preset, else no key", "the environment variable that holds its key"),
    key("model_providers.NAME.env_key_instructions", Kind::Text, "none", "how to get a key, shown when the variable is not set"),
    key("model_providers.NAME.key_file", Kind::Text, "", "the file that holds its key; the path begins with `/` or `~/`"),
    key("model_providers.NAME.auth", Kind::Table, "", "a command that prints its key"),
    key("model_providers.NAME.auth.command", Kind::Text, "required", "the program: its name, or its absolute path"),
    key("model_providers.NAME.auth.args", Kind::Texts, "none", "its arguments"),
    key("model_providers.NAME.auth.cwd", Kind::Text, "the folder of the user's `config.toml`", "its working directory"),
    key("model_providers.NAME.auth.env_vars", Kind::Texts, "none", "environment variables that it gets beside `PATH`, `HOME` and the like"),
    key("model_providers.NAME.auth.timeout_ms", Kind::Whole, "5000", "its timeout"),
    key("model_providers.NAME.auth.refresh_interval_ms", Kind::Whole, "300000", "how long its key is used; 0 for as long as the vendor accepts it"),
    key("model_providers.NAME.experimental_bearer_token", Kind::Text, "", "the key itself; prefer another source"),
    key("model_providers.NAME.oauth", Kind::Table, "no sign-in", "OAuth endpoints for signing in"),
    key("model_providers.NAME.oauth.client_id", Kind::Text, "required", "the OAuth client id"),
    key("model_providers.NAME.oauth.token_url", Kind::Text, "required", "the token endpoint"),
    key("model_providers.NAME.oauth.authorize_url", Kind::Text, "no sign-in with a browser", "the authorization page for browsers on this machine"),
    key("model_providers.NAME.oauth.device_url", Kind::Text, "no sign-in with a code", "the device authorization endpoint"),
    key("model_providers.NAME.oauth.scopes", Kind::Texts, "none", "the requested scopes"),
    key("model_providers.NAME.oauth.redirect_port", Kind::Whole, "any free port", "the port of the redirect URL"),
    key("model_providers.NAME.requires_openai_auth", Kind::Flag, "false", "whether clients should ask the user to sign in"),
    key("model_providers.NAME.http_headers", Kind::TextTable, "none", "headers of every request"),
    key("model_providers.NAME.env_http_headers", Kind::TextTable, "none", "headers of every request, by the environment variables that hold the values"),
    key("model_providers.NAME.query_params", Kind::TextTable, "none", "query parameters of every request"),
    key("model_providers.NAME.max_output_tokens", Kind::Whole, "the vendor's limit", "the maximum number of output tokens of a response"),
    key("model_providers.NAME.request_max_retries", Kind::Whole, "4", "how often to retry a call that got no response"),
    key("model_providers.NAME.stream_max_retries", Kind::Whole, "5", "how often to retry a call whose response broke off"),
    key("model_providers.NAME.stream_idle_timeout_ms", Kind::Whole, "300000", "the idle timeout of a response"),
    key("model_providers.NAME.connect_timeout_ms", Kind::Whole, "20000", "the timeout of connecting"),
    key("model_providers.NAME.total_timeout_ms", Kind::Whole, "3600000", "the timeout of a whole response"),
    key("profiles", Kind::Table, "", "further choices of models; `model/list` shows them"),
    key("profiles.NAME", Kind::Table, "", "one choice"),
    key("profiles.NAME.model", Kind::Text, "", "its model"),
    key("profiles.NAME.model_provider", Kind::Text, "`model_provider`", "its provider"),
    key("skills", Kind::Table, "", "settings of skills"),
    key("skills.config", Kind::Tables, "every skill is enabled", "disabled skills, a `[[skills.config]]` each with `name` or `path`, and `enabled = false`"),
    key("mcp_servers", Kind::Table, "", "MCP servers, each by a name of letters, digits and `_-:@/.`; `raddle mcp` writes them"),
    key("mcp_servers.NAME", Kind::Table, "", "one MCP server, with `command` or `url`"),
    key("mcp_servers.NAME.command", Kind::Text, "required without `url`", "the program to start: its name or its path"),
    key("mcp_servers.NAME.args", Kind::Texts, "none", "its arguments"),
    key("mcp_servers.NAME.env", Kind::TextTable, "none", "variables to set for it"),
    key("mcp_servers.NAME.env_vars", Kind::Variables, "none", "environment variables of the server that it gets; those with the source `remote` are left out"),
    key("mcp_servers.NAME.cwd", Kind::Text, "the folder of the thread if it is trusted, else a cache folder", "its working directory, relative to the folder of the thread"),
    key("mcp_servers.NAME.network", Kind::Flag, "true", "whether the program may use the network"),
    key("mcp_servers.NAME.sandbox", Kind::Flag, "true", "whether the program runs in the sandbox"),
    key("mcp_servers.NAME.url", Kind::Text, "required without `command`", "the address of a streamable HTTP server, with `http` or `https`"),
    key("mcp_servers.NAME.bearer_token_env_var", Kind::Text, "none", "the environment variable that holds its bearer token"),
    key("mcp_servers.NAME.http_headers", Kind::TextTable, "none", "headers of every request"),
    key("mcp_servers.NAME.env_http_headers", Kind::TextTable, "none", "headers of every request, by the environment variables that hold the values"),
    key("mcp_servers.NAME.enabled", Kind::Flag, "true", "whether threads use it"),
    key("mcp_servers.NAME.required", Kind::Flag, "false", "whether turns wait for it, and fail if it does not connect"),
    key("mcp_servers.NAME.startup_timeout_sec", Kind::Seconds, "30", "the timeout of its start, in seconds"),
    key("mcp_servers.NAME.startup_timeout_ms", Kind::Whole, "`startup_timeout_sec`", "the same in milliseconds; `startup_timeout_sec` takes precedence"),
    key("mcp_servers.NAME.tool_timeout_sec", Kind::Seconds, "120", "the timeout of a call, in seconds"),
    key("mcp_servers.NAME.enabled_tools", Kind::Texts, "all", "the tools to offer"),
    key("mcp_servers.NAME.disabled_tools", Kind::Texts, "none", "tools not to offer, even if `enabled_tools` lists them"),
    key("mcp_servers.NAME.default_tools_approval_mode", Kind::OneOf(MCP_APPROVALS), "`auto`", "when to ask the user before a call: as the policy decides (`auto`), always (`prompt` and `writes`), or never (`approve`)"),
    key("mcp_servers.NAME.tools", Kind::Table, "", "settings of single tools, by name"),
    key("mcp_servers.NAME.tools.TOOL", Kind::Table, "", "one tool"),
    key("mcp_servers.NAME.tools.TOOL.approval_mode", Kind::OneOf(MCP_APPROVALS), "`default_tools_approval_mode`", "when to ask the user before a call of this tool"),
    key("mcp_servers.NAME.tools.TOOL.output_token_limit", Kind::Whole, "", "for Codex; not used"),
    key("mcp_servers.NAME.scopes", Kind::Texts, "those that the server asks for", "the OAuth scopes of a login"),
    key("mcp_servers.NAME.oauth", Kind::Table, "", "settings of a login by OAuth"),
    key("mcp_servers.NAME.oauth.client_id", Kind::Text, "Raddle registers itself", "the id of an OAuth client that is registered by hand"),
    key("mcp_servers.NAME.oauth.client_secret", Kind::Text, "none", "the secret of that client"),
    key("mcp_servers.NAME.oauth.token_endpoint_auth_method", Kind::OneOf(&["client_secret_basic", "client_secret_post"]), "as the authorization server supports it", "how that client sends its secret"),
    key("mcp_servers.NAME.oauth.callback_url", Kind::Text, "`mcp_oauth_callback_url`", "the redirect URL of a login, on this machine: `http://127.0.0.1` with a path"),
    key("mcp_servers.NAME.oauth.callback_port", Kind::Whole, "`mcp_oauth_callback_port`", "the port of the redirect URL"),
    key("mcp_servers.NAME.oauth.authorization_server_issuer", Kind::Text, "the first that the server names", "the authorization server to use"),
    key("mcp_servers.NAME.oauth_resource", Kind::Text, "the one that the server names", "the OAuth resource to request tokens for"),
    key("mcp_servers.NAME.auth", Kind::OneOf(&["oauth", "chatgpt", "ema_auth"]), "", "for Codex; not used"),
    key("mcp_servers.NAME.http_headers_helper", Kind::Text, "", "for Codex; not used"),
    key("mcp_servers.NAME.environment_id", Kind::Text, "", "for Codex; not used: servers run on this machine"),
    key("mcp_servers.NAME.name", Kind::Text, "", "its name for people; not used"),
    key("mcp_servers.NAME.startup_readiness", Kind::OneOf(&["connection", "catalog"]), "", "for Codex; not used"),
    key("mcp_servers.NAME.supports_parallel_tool_calls", Kind::Flag, "", "for Codex; not used"),
    key("mcp_servers.NAME.tool_input_schema_max_bytes", Kind::Whole, "", "for Codex; not used"),
    key("mcp_servers.NAME.omit_tools_from", Kind::Texts, "", "for Codex; not used"),
    key("mcp_oauth_callback_port", Kind::Whole, "any free port", "the port of the redirect URL of logins at MCP servers"),
    key("mcp_oauth_callback_url", Kind::Text, "`http://127.0.0.1/callback`", "the redirect URL of logins at MCP servers, on this machine"),
    key("mcp_oauth_credentials_store", Kind::OneOf(&["auto", "file", "keyring"]), "", "for Codex; not used: logins are stored in a file of Raddle's home"),
    key("hooks", Kind::Table, "", "commands on events of threads, see [hooks](hooks.md); a `hooks.json` beside this file has the same form"),
    key("hooks.PreToolUse", Kind::Tables, "none", "hooks that run before a tool runs, a table each with `hooks` and perhaps `matcher`"),
    key("hooks.PermissionRequest", Kind::Tables, "none", "hooks that run when an approval is requested, a table each with `hooks` and perhaps `matcher`"),
    key("hooks.PostToolUse", Kind::Tables, "none", "hooks that run after a tool has run, a table each with `hooks` and perhaps `matcher`"),
    key("hooks.PreCompact", Kind::Tables, "none", "hooks that run before the history is summarised, a table each with `hooks` and perhaps `matcher`"),
    key("hooks.PostCompact", Kind::Tables, "none", "hooks that run after the history was summarised, a table each with `hooks` and perhaps `matcher`"),
    key("hooks.SessionStart", Kind::Tables, "none", "hooks that run before the first input of a thread, a table each with `hooks` and perhaps `matcher`"),
    key("hooks.UserPromptSubmit", Kind::Tables, "none", "hooks that run when the user sends input, a table each with `hooks` and perhaps `matcher`"),
    key("hooks.Stop", Kind::Tables, "none", "hooks that run when the agent is about to end its turn, a table each with `hooks` and perhaps `matcher`"),
    key("hooks.PreModelRequest", Kind::Tables, "", "for Codex; not used"),
    key("hooks.PostModelRequest", Kind::Tables, "", "for Codex; not used"),
    key("hooks.SessionEnd", Kind::Tables, "", "for Codex; not used"),
    key("hooks.SubagentStart", Kind::Tables, "", "for Codex; not used"),
    key("hooks.SubagentStop", Kind::Tables, "", "for Codex; not used"),
    key("hooks.Interrupt", Kind::Tables, "", "for Codex; not used"),
    key("hooks.state", Kind::Table, "", "the user's decisions about hooks; `raddle hooks` and clients write them"),
    key("hooks.state.KEY", Kind::Table, "", "the decisions about one hook"),
    key("hooks.state.KEY.enabled", Kind::Flag, "true", "whether the hook is enabled"),
    key("hooks.state.KEY.trusted_hash", Kind::Text, "not trusted", "the hash of the form that the user trusts"),
    key("plugins", Kind::Table, "", "plugins, each by its id, see [plugins](plugins-reference.md#install); `raddle plugin` writes them"),
    key("plugins.ID", Kind::Table, "", "one plugin; an entry of Codex, without `path`, is not used"),
    key("plugins.ID.path", Kind::Text, "the entry is not used", "the absolute path of its folder"),
    key("plugins.ID.enabled", Kind::Flag, "true", "whether threads use it"),
    key("plugins.ID.trusted_hash", Kind::Text, "not trusted", "the hash of the files that the user trusts"),
    key("projects", Kind::Table, "", "folders, by their absolute paths"),
    key("projects.PATH", Kind::Table, "", "one folder"),
    key("projects.PATH.trust_level", Kind::OneOf(&["trusted", "untrusted"]), "the model gets no skills of the folder, and the user is asked", "whether the model gets the skills of the folder, or of the repository with this root"),
    key("store", Kind::Table, "the home's own file", "a PostgreSQL database that stores the threads, see [the fleet](fleet.md); a server reads it at its start"),
    key("store.address", Kind::Text, "required without `address_env`", "its address, as `postgres://USER:PASSWORD@HOST/DATABASE`, or as keywords and values"),
    key("store.address_env", Kind::Text, "required without `address`", "the environment variable that holds its address"),
    key("store.schema", Kind::Text, "`raddle`", "the schema of the tables"),
    client_owned("check_for_update_on_startup"),
    client_owned("desktop"),
    client_owned("disable_paste_burst"),
    client_owned("features"),
    client_owned("file_opener"),
    client_owned("hide_agent_reasoning"),
    client_owned("history"),
    client_owned("notice"),
    client_owned("personality"),
    client_owned("plan_mode_reasoning_effort"),
    client_owned("service_tier"),
    client_owned("show_raw_agent_reasoning"),
    client_owned("tui"),
    client_owned("web_search"),
];

/// The approval modes of tools of MCP servers, as in Codex.
const MCP_APPROVALS: &[&str] = &["auto", "prompt", "writes", "approve"];

const fn client_owned(path: &'static str) -> ConfigKey {
    key(
        path,
        Kind::ClientOwned,
        "",
        "stored for clients unchanged; the server does not read it",
    )
}

/// The keys that environment variables may set: the choice of the model, and never permissions,
/// because programs load variables from files of a workspace.
const ENVIRONMENT_KEYS: &[&str] = &[
    "model",
    "model_provider",
    "review_model",
    "model_reasoning_effort",
];

/// The keys, with all keys below them, that name programs to start, sources and destinations of
/// model keys, the variables of commands, the store of threads, or the prices by which money limits
/// are counted. Some are read by other programs that share the file, or will be by later versions.
const GUARDED_KEYS: &[&str] = &[
    "allow_login_shell",
    "hooks",
    "login_shell_path",
    "mcp_servers",
    "model_providers",
    "notify",
    "plugins",
    "prices",
    "remote_clients_set_programs",
    "sandbox_bwrap_path",
    STORE_TABLE,
    VARIABLES_TABLE,
];

/// The table of the store.
pub(crate) const STORE_TABLE: &str = "store";

/// The table of plugins.
pub(crate) const PLUGINS_TABLE: &str = "plugins";

/// The table of variables of commands. Of the reference's members, the server reads `set` alone.
pub(crate) const VARIABLES_TABLE: &str = "shell_environment_policy";

/// The flag that lets remote clients write those keys.
pub(crate) const REMOTE_FLAG: &str = "remote_clients_set_programs";

/// Returns a guarded key whose value differs between two tables.
pub(crate) fn guarded_change(before: &toml::Table, after: &toml::Table) -> Option<&'static str> {
    let mut keys = GUARDED_KEYS.iter().copied();
    keys.find(|it| before.get(*it) != after.get(*it))
}

/// Returns each key that environment variables may set, with its variable.
pub(crate) fn variables() -> impl Iterator<Item = (&'static str, String)> {
    let name = |key: &str| format!("RADDLE_{}", key.to_uppercase());
    ENVIRONMENT_KEYS.iter().map(move |it| (*it, name(it)))
}

/// Returns the description of a key, if it is known.
pub(crate) fn known(path: &[String]) -> Option<&'static ConfigKey> {
    KEYS.iter().find(|it| matches_pattern(it.path, path))
}

pub(crate) fn matches_pattern(pattern: &str, path: &[String]) -> bool {
    let parts = pattern.split('.');
    parts.clone().count() == path.len()
        && parts
            .zip(path)
            .all(|(part, it)| is_placeholder(part) || part == it)
}

/// Whether a part of a path stands for any name.
pub(crate) fn is_placeholder(part: &str) -> bool {
    part.chars().all(|it| it.is_ascii_uppercase())
}

/// Returns a warning about a key, whatever its value: it or a table above it is unknown.
pub(crate) fn unknown_key_warning(path: &[String]) -> Option<String> {
    for end in 1..=path.len() {
        match known(&path[..end]) {
            None => return Some(unknown_key(&path[..end])),
            // The keys below are free.
            Some(key) if key.kind != Kind::Table => return None,
            Some(_) => {}
        }
    }
    None
}

/// The problems of a layer, a sentence each.
#[derive(Debug, Default)]
pub(crate) struct LayerProblems {
    /// Invalid values, in the order of [`KEYS`].
    pub(crate) invalid: Vec<String>,
    /// Keys that the server does not know.
    pub(crate) unused: Vec<String>,
}

pub(crate) fn check_layer(layer: &toml::Table) -> LayerProblems {
    let (mut invalid, mut unused) = (Vec::new(), Vec::new());
    walk(layer, &mut Vec::new(), &mut |path, problem| match problem {
        KeyProblem::InvalidValue(index) => {
            let expected = KEYS[index].kind.expected();
            invalid.push((index, format!("{} must be {expected}", key_name(path))));
        }
        KeyProblem::Unused => unused.push(unknown_key(path)),
    });
    invalid.sort_by_key(|(index, _)| *index);
    LayerProblems {
        invalid: invalid.into_iter().map(|(_, problem)| problem).collect(),
        unused,
    }
}

/// Returns a table without its invalid values.
pub(crate) fn without_invalid(table: &toml::Table) -> toml::Table {
    let mut invalid = Vec::new();
    walk(table, &mut Vec::new(), &mut |path, problem| {
        if let KeyProblem::InvalidValue(_) = problem {
            invalid.push(path.to_owned());
        }
    });
    let mut valid = table.clone();
    for path in &invalid {
        layers::remove(&mut valid, path);
    }
    valid
}

/// Returns the first unknown key among those of a request that bound something, with the valid
/// ones. The reader of a key reports an invalid value.
pub(crate) fn first_unknown_bound(request_config: &toml::Table) -> Option<String> {
    let mut first_problem = None;
    walk(request_config, &mut Vec::new(), &mut |path, problem| {
        let parents = &path[..path.len().saturating_sub(1)];
        let what = match problem {
            KeyProblem::InvalidValue(index) if KEYS[index].kind == Kind::Table => {
                let names: Vec<&str> = names_in(path).collect();
                format!("{} must be a table of {}", key_name(path), names.join(", "))
            }
            KeyProblem::InvalidValue(_) => return,
            KeyProblem::Unused => {
                let names: Vec<&str> = names_in(parents).collect();
                format!("{}; write one of {}", unknown_key(path), names.join(", "))
            }
        };
        first_problem.get_or_insert(what);
    });
    first_problem
}

/// Returns the names of all keys in a table that are not free.
fn names_in(table: &[String]) -> impl Iterator<Item = &'static str> {
    KEYS.iter().filter_map(move |it| {
        let (parent, name) = it.path.rsplit_once('.').unwrap_or(("", it.path));
        let is_in = match table {
            [] => parent.is_empty(),
            table => !parent.is_empty() && matches_pattern(parent, table),
        };
        (is_in && !is_placeholder(name)).then_some(name)
    })
}

enum KeyProblem {
    /// The value of the key at this index of [`KEYS`] is invalid.
    InvalidValue(usize),
    Unused,
}

fn walk(
    table: &toml::Table,
    path: &mut Vec<String>,
    report: &mut impl FnMut(&[String], KeyProblem),
) {
    for (name, value) in table {
        path.push(name.clone());
        match (
            KEYS.iter().position(|it| matches_pattern(it.path, path)),
            value,
        ) {
            (None, _) => report(path, KeyProblem::Unused),
            (Some(index), value) if !KEYS[index].kind.fits(value) => {
                report(path, KeyProblem::InvalidValue(index))
            }
            (Some(index), toml::Value::Table(inner)) if KEYS[index].kind == Kind::Table => {
                walk(inner, path, report);
            }
            _ => {}
        }
        path.pop();
    }
}

/// Says that a key is unknown, and suggests a similar one.
fn unknown_key(path: &[String]) -> String {
    let similar = path
        .split_last()
        .and_then(|(last, parents)| nearest(last, names_in(parents)));
    let suggestion = similar.map(|it| format!(" (did you mean `{it}`?)"));
    format!(
        "{} is not used here{}",
        key_name(path),
        suggestion.unwrap_or_default()
    )
}

/// Returns a key and the table it is in, for people.
fn key_name(path: &[String]) -> String {
    match path.split_last() {
        Some((last, [])) => format!("`{last}`"),
        Some((last, parents)) => format!("`{last}` under [{}]", dotted(parents)),
        None => "the whole".to_owned(),
    }
}

/// Returns a path as it is written in TOML.
pub(crate) fn dotted(path: &[String]) -> String {
    let parts = path.iter().map(|it| toml_edit::Key::new(it).to_string());
    parts.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_of_a_layer_are_reported() {
        for (layer, expected) in [
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
            ("hooks = []\n", vec!["`hooks` must be a table"]),
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
                "[mcp_servers.a]\ncommand = 'x'\nenv_vars = ['A', { name = 'B', source = 'local' }]\n\
                 startup_timeout_sec = 0.5\ntools.t.approval_mode = 'writes'\n",
                vec![],
            ),
            (
                "[mcp_servers.a]\ncommand = ['x']\nenv_vars = [{ name = 'B', source = 'far' }]\n\
                 startup_timeout_sec = inf\ntool_timeout_sec = 0\nstartup_timeout_secs = 1\n\
                 tools.t.approval_mode = 'never'\n",
                vec![
                    "`command` under [mcp_servers.a] must be a string",
                    "`env_vars` under [mcp_servers.a] must be a list of strings, or of tables with `name` and a `source` of local or remote",
                    "`startup_timeout_sec` under [mcp_servers.a] must be a number of seconds above 0",
                    "`tool_timeout_sec` under [mcp_servers.a] must be a number of seconds above 0",
                    "`approval_mode` under [mcp_servers.a.tools.t] must be one of auto, prompt, writes, approve",
                    "`startup_timeout_secs` under [mcp_servers.a] is not used here (did you mean `startup_timeout_sec`?)",
                ],
            ),
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
            let LayerProblems { invalid, unused } = check_layer(&table);
            assert_eq!([invalid, unused].concat(), expected, "{layer}");
        }
    }

    /// A remote client writes no part of an MCP server, in whatever form it names it.
    #[test]
    fn every_change_of_mcp_servers_is_guarded() {
        let before = "[mcp_servers.a]\ncommand = 'x'\nnetwork = false\n";
        for after in [
            "",
            "mcp_servers = {}\n",
            "mcp_servers = 5\n",
            "[mcp_servers.a]\ncommand = 'y'\nnetwork = false\n",
            "[mcp_servers.a]\ncommand = 'x'\n",
            "[mcp_servers.a]\ncommand = 'x'\nnetwork = true\n",
            "[mcp_servers.a]\ncommand = 'x'\nnetwork = false\nsandbox = false\n",
            "[mcp_servers.a]\ncommand = 'x'\nnetwork = false\n[mcp_servers.a.env]\nA = 'b'\n",
            "'mcp_servers'.'a' = { command = 'x', network = false, args = ['z'] }\n",
            "[mcp_servers.a]\ncommand = 'x'\nnetwork = false\n[mcp_servers.b]\nurl = 'http://h'\n",
        ] {
            let table = |text: &str| text.parse::<toml::Table>().expect("TOML");
            let change = guarded_change(&table(before), &table(after));
            assert_eq!(change, Some("mcp_servers"), "{after}");
        }
    }

    #[test]
    fn the_table_of_keys_is_consistent() {
        for (index, key) in KEYS.iter().enumerate() {
            let same_path = KEYS.iter().filter(|it| it.path == key.path);
            assert_eq!(same_path.count(), 1, "{}", key.path);
            assert!(!key.description.is_empty(), "{}", key.path);
            if let Some((parent, _)) = key.path.rsplit_once('.') {
                let parent = KEYS[..index].iter().find(|it| it.path == parent);
                assert_eq!(
                    parent.map(|it| &it.kind),
                    Some(&Kind::Table),
                    "{}",
                    key.path
                );
            }
        }
        for (key, _) in variables() {
            let key = known(&[key.to_owned()]).expect("it is known");
            assert_eq!(key.kind, Kind::Text, "{}", key.path);
        }
    }

    #[test]
    fn the_documentation_page_has_the_same_table() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.md");
        let page = std::fs::read_to_string(page).expect("the page of the configuration");
        let mut table = String::new();
        let is_documented = |it: &&ConfigKey| {
            !matches!(it.kind, Kind::ClientOwned)
                && !is_placeholder(it.path.rsplit('.').next().unwrap_or(""))
        };
        for key in KEYS.iter().filter(is_documented) {
            let ConfigKey {
                path,
                kind,
                default_value,
                description,
            } = key;
            let expected = kind.expected();
            table.push_str(&format!(
                "| `{path}` | {expected} | {description} | {default_value} |\n"
            ));
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
