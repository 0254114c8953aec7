//! Reads the section of an MCP server. The table of keys checks the types of values; this module
//! checks which of them belong together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use toml::{Table, Value};

use super::{
    MCP_TABLE, McpApproval, McpCallback, McpClientAuth, McpOauth, McpProblem, McpServer,
    McpServers, McpTransport,
};
use crate::keys;
use crate::setting_error::quoted;

const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);
const TOOL_TIMEOUT: Duration = Duration::from_secs(120);

/// Timeouts outside of this range are as good as its ends.
const TIMEOUT_MIN: Duration = Duration::from_millis(1);
const TIMEOUT_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Characters of a name beside letters and digits.
const NAME_PUNCTUATION: &str = "_-:@/.";

/// The source of variables on another machine, where Codex can run servers.
const REMOTE: &str = "remote";

/// Keys of servers with `url` alone.
const HTTP_KEYS: &[&str] = &[
    "bearer_token_env_var",
    "http_headers",
    "env_http_headers",
    "http_headers_helper",
    "auth",
    "oauth",
    "oauth_resource",
];

/// Keys of servers with `command` alone.
const STDIO_KEYS: &[&str] = &["args", "env", "env_vars", "cwd"];

/// Reads all servers of a merged configuration.
pub(crate) fn read(config: &Table) -> McpServers {
    let mut all = McpServers::default();
    let callback = McpCallback::of_all(config);
    for (name, value) in sections(config) {
        match check(name, value) {
            Ok(mut server) => {
                if matches!(server.transport, McpTransport::Http { .. }) {
                    let own = server.oauth.callback.take();
                    server.oauth.callback = own.or_else(|| callback.clone());
                }
                all.servers.push(Arc::new(server));
            }
            Err(problem) => all.problems.push(problem),
        }
    }
    all.servers.sort_by(|a, b| a.name.cmp(&b.name));
    all.problems.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Reads one server, or returns its first problem.
pub(crate) fn check(name: &str, value: &Value) -> Result<McpServer, McpProblem> {
    let section = value.as_table().map(ServerSection);
    let is_required =
        |it: &ServerSection<'_>| it.flag("enabled", true) && it.flag("required", false);
    let problem = |text: String| McpProblem {
        name: quoted(name).into_owned(),
        text,
        required: section.as_ref().is_some_and(is_required),
    };
    match (invalid_value(name, value), &section) {
        (None, Some(section)) => section.server(name).map_err(problem),
        (invalid, _) => Err(problem(
            invalid.unwrap_or_else(|| "it must be a table".to_owned()),
        )),
    }
}

/// Returns the problems of servers whose values have valid types. Others are problems of a key,
/// which the check of keys reports.
pub(crate) fn structural_problems(config: &Table) -> Vec<McpProblem> {
    let all = sections(config).filter(|(name, value)| invalid_value(name, value).is_none());
    all.filter_map(|(name, value)| check(name, value).err())
        .collect()
}

/// Returns a sentence for each key of Codex that is accepted and has no effect here, where the
/// server would behave otherwise with it. The name of the server comes first.
pub(crate) fn ineffective_keys(config: &Table) -> Vec<(String, String)> {
    let mut warnings = Vec::new();
    for (name, value) in sections(config) {
        let Some(table) = value.as_table() else {
            continue;
        };
        let mut warn = |what: &str| {
            let name = name.to_owned();
            let text = format!("the MCP server `{}`: {what}", quoted(&name));
            warnings.push((name, text));
        };
        let section = ServerSection(table);
        if section
            .text("environment_id")
            .is_some_and(|it| it != "local")
        {
            warn("`environment_id` has no effect; the server runs on this machine");
        }
        if table.contains_key("http_headers_helper") {
            warn("`http_headers_helper` has no effect; set `http_headers` or `env_http_headers`");
        }
        if section.text("auth").is_some_and(|it| it != "oauth") {
            warn("`auth` has no effect; set `bearer_token_env_var` or `env_http_headers`");
        }
        let oauth = table.get("oauth").and_then(Value::as_table);
        let callback = oauth.and_then(|it| it.get("callback_url")?.as_str());
        if callback.is_some_and(|it| McpCallback::parse(it).is_none()) {
            warn("`oauth.callback_url` has no effect; it must begin with http://127.0.0.1");
        }
        if section.has_remote_variables() {
            warn("`env_vars` with the source `remote` are not passed on");
        }
        if section.approvals().any(|it| it == "writes") {
            warn("the approval mode `writes` has the effect of `prompt`");
        }
    }
    warnings
}

fn sections(config: &Table) -> impl Iterator<Item = (&str, &Value)> {
    let table = config.get(MCP_TABLE).and_then(Value::as_table);
    let entries = table.into_iter().flat_map(Table::iter);
    entries.map(|(name, value)| (name.as_str(), value))
}

/// Returns what is wrong with the first value of a server that has an invalid type.
fn invalid_value(name: &str, value: &Value) -> Option<String> {
    let mut servers = Table::new();
    servers.insert(name.to_owned(), value.clone());
    let mut config = Table::new();
    config.insert(MCP_TABLE.to_owned(), Value::Table(servers));
    keys::check_layer(&config).invalid.into_iter().next()
}

/// The table of a server, whose values have the types of the table of keys.
struct ServerSection<'a>(&'a Table);

impl<'a> ServerSection<'a> {
    fn server(&self, name: &str) -> Result<McpServer, String> {
        let is_allowed = |it: char| it.is_ascii_alphanumeric() || NAME_PUNCTUATION.contains(it);
        if name.is_empty() || !name.chars().all(is_allowed) {
            return Err(format!(
                "its name may have only letters, digits and `{NAME_PUNCTUATION}`; use another name"
            ));
        }
        let transport = self.transport()?;
        let startup_timeout = match self.seconds("startup_timeout_sec") {
            None => self.milliseconds("startup_timeout_ms")?,
            seconds => seconds,
        };
        let tools = self.0.get("tools").and_then(Value::as_table);
        let tool_approvals = tools.into_iter().flat_map(Table::iter);
        let tool_approvals = tool_approvals
            .filter_map(|(tool, it)| Some((tool.clone(), approval(it.get("approval_mode")?)?)));
        Ok(McpServer {
            name: name.to_owned(),
            transport,
            enabled: self.flag("enabled", true),
            required: self.flag("required", false),
            startup_timeout: startup_timeout.unwrap_or(STARTUP_TIMEOUT),
            tool_timeout: self.seconds("tool_timeout_sec").unwrap_or(TOOL_TIMEOUT),
            enabled_tools: self.texts("enabled_tools"),
            disabled_tools: self.texts("disabled_tools").unwrap_or_default(),
            approval: self
                .0
                .get("default_tools_approval_mode")
                .and_then(approval)
                .unwrap_or_default(),
            tool_approvals: tool_approvals.collect(),
            network: self.flag("network", true),
            sandbox: self.flag("sandbox", true),
            oauth: self.oauth()?,
            plugin: None,
        })
    }

    /// Returns the settings of logins. A program has none.
    fn oauth(&self) -> Result<McpOauth, String> {
        if self.0.contains_key("command") {
            return Ok(McpOauth::default());
        }
        let empty = Table::new();
        let table = self.0.get("oauth").and_then(Value::as_table);
        let oauth = ServerSection(table.unwrap_or(&empty));
        let text = |key: &str| oauth.text(key).map(str::to_owned);
        let port = oauth.0.get("callback_port").and_then(Value::as_integer);
        let port = port.map(u16::try_from).transpose().map_err(|_| {
            "`oauth.callback_port` must be at most 65535; 0 stands for any free port".to_owned()
        })?;
        let auth = oauth.text("token_endpoint_auth_method");
        Ok(McpOauth {
            client_id: text("client_id"),
            client_secret: text("client_secret"),
            client_auth: auth.and_then(McpClientAuth::of),
            scopes: self.texts("scopes").unwrap_or_default(),
            resource: self.text("oauth_resource").map(str::to_owned),
            issuer: text("authorization_server_issuer"),
            callback: McpCallback::of(oauth.text("callback_url"), port),
        })
    }

    fn transport(&self) -> Result<McpTransport, String> {
        if self.0.contains_key("bearer_token") {
            return Err(
                "`bearer_token` is not supported; put the token into an environment variable, and \
                 name that with `bearer_token_env_var`"
                    .to_owned(),
            );
        }
        match (self.text("command"), self.text("url")) {
            (Some(_), Some(_)) => {
                Err("it has both `command` and `url`; remove one of them".to_owned())
            }
            (None, None) => Err(
                "it has neither `command` nor `url`; set `command` for a program, or `url` for an \
                 HTTP server"
                    .to_owned(),
            ),
            (Some(command), None) => {
                self.reject_keys(HTTP_KEYS, "url", "command")?;
                if command.trim().is_empty() {
                    return Err("`command` must name a program".to_owned());
                }
                Ok(McpTransport::Stdio {
                    command: command.to_owned(),
                    args: self.texts("args").unwrap_or_default(),
                    env: self.text_table("env"),
                    env_vars: self.variable_names(),
                    cwd: self.text("cwd").map(Into::into),
                })
            }
            (None, Some(url)) => {
                self.reject_keys(STDIO_KEYS, "command", "url")?;
                if !is_http_url(url) {
                    return Err("`url` must be an address with http:// or https://".to_owned());
                }
                Ok(McpTransport::Http {
                    url: url.to_owned(),
                    bearer_token_env_var: self.text("bearer_token_env_var").map(str::to_owned),
                    headers: self.text_table("http_headers"),
                    env_headers: self.text_table("env_http_headers"),
                })
            }
        }
    }

    /// Rejects the keys that belong to the other kind of server.
    fn reject_keys(&self, keys: &[&str], theirs: &str, own: &str) -> Result<(), String> {
        match keys.iter().find(|it| self.0.contains_key(**it)) {
            Some(key) => Err(format!(
                "`{key}` belongs to a server with `{theirs}`, and this one has `{own}`; remove it"
            )),
            None => Ok(()),
        }
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.0.get(key).and_then(Value::as_str)
    }

    fn flag(&self, key: &str, default: bool) -> bool {
        let flag = self.0.get(key).and_then(Value::as_bool);
        flag.unwrap_or(default)
    }

    fn texts(&self, key: &str) -> Option<Vec<String>> {
        let texts = self.0.get(key)?.as_array()?.iter();
        Some(texts.filter_map(Value::as_str).map(str::to_owned).collect())
    }

    fn text_table(&self, key: &str) -> BTreeMap<String, String> {
        let table = self.0.get(key).and_then(Value::as_table);
        let entries = table.into_iter().flat_map(Table::iter);
        entries
            .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
            .collect()
    }

    fn seconds(&self, key: &str) -> Option<Duration> {
        let duration = match self.0.get(key)? {
            Value::Integer(it) => Duration::from_secs(u64::try_from(*it).ok()?),
            Value::Float(it) => Duration::try_from_secs_f64(*it).unwrap_or(TIMEOUT_MAX),
            _ => return None,
        };
        Some(duration.clamp(TIMEOUT_MIN, TIMEOUT_MAX))
    }

    fn milliseconds(&self, key: &str) -> Result<Option<Duration>, String> {
        let number = self.0.get(key).and_then(Value::as_integer);
        let Some(number) = number.and_then(|it| u64::try_from(it).ok()) else {
            return Ok(None);
        };
        match number {
            0 => Err(format!("`{key}` must be above 0")),
            _ => Ok(Some(Duration::from_millis(number).min(TIMEOUT_MAX))),
        }
    }

    /// Returns the names of the variables to pass on from this machine.
    fn variable_names(&self) -> Vec<String> {
        let names = self
            .variables()
            .filter(|(_, source)| *source != Some(REMOTE));
        names.map(|(name, _)| name.to_owned()).collect()
    }

    fn has_remote_variables(&self) -> bool {
        self.variables().any(|(_, source)| source == Some(REMOTE))
    }

    /// Returns the name and the source of each variable to pass on.
    fn variables(&self) -> impl Iterator<Item = (&'a str, Option<&'a str>)> {
        let entries = self.0.get("env_vars").and_then(Value::as_array);
        entries.into_iter().flatten().filter_map(|it| match it {
            Value::String(name) => Some((name.as_str(), None)),
            Value::Table(entry) => {
                let source = entry.get("source").and_then(Value::as_str);
                Some((entry.get("name")?.as_str()?, source))
            }
            _ => None,
        })
    }

    /// Returns the approval modes of all its tools, as configured.
    fn approvals(&self) -> impl Iterator<Item = &'a str> {
        let tools = self.0.get("tools").and_then(Value::as_table);
        let of_tools = tools.into_iter().flat_map(Table::iter);
        let of_tools = of_tools.filter_map(|(_, it)| it.get("approval_mode"));
        let default = self.0.get("default_tools_approval_mode").into_iter();
        default.chain(of_tools).filter_map(Value::as_str)
    }
}

/// Reads an approval mode. `writes` asks before calls that change something, by the server's own
/// word; `prompt` includes those.
fn approval(value: &Value) -> Option<McpApproval> {
    match value.as_str()? {
        "auto" => Some(McpApproval::Auto),
        "prompt" | "writes" => Some(McpApproval::Prompt),
        "approve" => Some(McpApproval::Approve),
        _ => None,
    }
}

fn is_http_url(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else {
        return false;
    };
    let is_http = ["http", "https"]
        .iter()
        .any(|it| scheme.eq_ignore_ascii_case(it));
    let has_host = !rest.is_empty() && !rest.starts_with(['/', '?', '#', ':']);
    let is_plain = !url.chars().any(|it| it.is_whitespace() || it.is_control());
    is_http && has_host && is_plain
}

#[cfg(test)]
mod tests;
