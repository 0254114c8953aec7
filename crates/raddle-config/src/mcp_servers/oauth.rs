//! Settings of logins at MCP servers, with the keys of Codex.

use std::fmt;

use toml::{Table, Value};

/// Name of the port of redirects, for all servers.
const CALLBACK_PORT: &str = "mcp_oauth_callback_port";

/// Name of the address of redirects, for all servers.
const CALLBACK_URL: &str = "mcp_oauth_callback_url";

/// Name of the place of stored logins.
const STORE: &str = "mcp_oauth_credentials_store";

/// Settings of a login at an MCP server that has a URL.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct McpOauth {
    /// Id of a client that is registered by hand.
    pub client_id: Option<String>,
    /// Secret of that client.
    pub client_secret: Option<String>,
    /// How that client authenticates itself, if not as the authorization server supports it.
    pub client_auth: Option<McpClientAuth>,
    /// Scopes to request; none for those that the server asks for.
    pub scopes: Vec<String>,
    /// Resource to request tokens for, if not the one that the server names.
    pub resource: Option<String>,
    /// Authorization server to use, of those that the server names.
    pub issuer: Option<String>,
    /// Address that the browser is redirected to.
    pub callback: Option<McpCallback>,
}

impl fmt::Debug for McpOauth {
    /// Leaves out the secret, because debug output reaches logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpOauth")
            .field("client_id", &self.client_id)
            .field("client_auth", &self.client_auth)
            .field("scopes", &self.scopes)
            .field("resource", &self.resource)
            .field("issuer", &self.issuer)
            .field("callback", &self.callback)
            .finish_non_exhaustive()
    }
}

/// How a client with a secret authenticates itself at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum McpClientAuth {
    /// By a header.
    Basic,
    /// By members of the form.
    Post,
}

impl McpClientAuth {
    /// Parses a method of OAuth.
    pub(super) fn of(name: &str) -> Option<Self> {
        match name {
            "client_secret_basic" => Some(Self::Basic),
            "client_secret_post" => Some(Self::Post),
            _ => None,
        }
    }
}

/// Address on this machine that the browser is redirected to after a login.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct McpCallback {
    /// `127.0.0.1` or `localhost`.
    pub host: String,
    /// Port; 0 stands for any free one.
    pub port: u16,
    /// Path, which begins with `/`.
    pub path: String,
}

impl Default for McpCallback {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 0,
            path: "/callback".to_owned(),
        }
    }
}

impl McpCallback {
    /// Returns the address of these settings. A URL on another machine has no effect.
    pub(super) fn of(url: Option<&str>, port: Option<u16>) -> Option<Self> {
        let parsed = url.and_then(Self::parse);
        if parsed.is_none() && port.is_none() {
            return None;
        }
        let mut callback = parsed.unwrap_or_default();
        if callback.port == 0 {
            callback.port = port.unwrap_or(0);
        }
        Some(callback)
    }

    /// Parses a URL; returns `None` if it is not one of this machine.
    pub(super) fn parse(url: &str) -> Option<Self> {
        let rest = url.strip_prefix("http://")?;
        let (authority, path) = match rest.split_once('/') {
            Some((authority, path)) => (authority, format!("/{path}")),
            None => (rest, "/".to_owned()),
        };
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, port.parse().ok()?),
            None => (authority, 0),
        };
        let is_local = matches!(host, "127.0.0.1" | "localhost");
        let is_plain = |it: char| it.is_ascii_graphic() && !"?#".contains(it);
        (is_local && path.chars().all(is_plain)).then(|| Self {
            host: host.to_owned(),
            port,
            path,
        })
    }

    /// Returns the address for servers that set none.
    pub(super) fn of_all(config: &Table) -> Option<Self> {
        let url = config.get(CALLBACK_URL).and_then(Value::as_str);
        let port = config.get(CALLBACK_PORT).and_then(Value::as_integer);
        Self::of(url, port.and_then(|it| it.try_into().ok()))
    }
}

/// Returns a sentence for each key about all logins that has no effect, after its name.
pub(crate) fn ineffective_login_keys(config: &Table) -> Vec<(&'static str, String)> {
    let mut warnings = Vec::new();
    let url = config.get(CALLBACK_URL).and_then(Value::as_str);
    if url.is_some_and(|it| McpCallback::parse(it).is_none()) {
        let what = format!("`{CALLBACK_URL}` has no effect; it must begin with http://127.0.0.1");
        warnings.push((CALLBACK_URL, what));
    }
    let port = config.get(CALLBACK_PORT).and_then(Value::as_integer);
    if port.is_some_and(|it| u16::try_from(it).is_err()) {
        let what = format!("`{CALLBACK_PORT}` has no effect; it must be at most 65535");
        warnings.push((CALLBACK_PORT, what));
    }
    if config.get(STORE).and_then(Value::as_str) == Some("keyring") {
        let what = format!(
            "`{STORE}` has no effect; logins are stored in a file of Raddle's home that only your \
             user can read"
        );
        warnings.push((STORE, what));
    }
    warnings
}
