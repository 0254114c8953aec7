//! Sources of the providers' keys.

use std::fmt;
use std::path::PathBuf;

/// Source of a provider's key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeySource {
    /// The provider takes no key.
    #[default]
    None,
    /// An environment variable that holds the key.
    Environment {
        /// Name of the variable.
        variable: String,
        /// How to get such a key, from the configuration.
        instructions: Option<String>,
    },
    /// A file that holds the key.
    File(PathBuf),
    /// A command that prints the key.
    Command(KeyCommand),
    /// The key itself, in the configuration.
    Inline(Secret),
    /// The credentials that are stored at sign-in.
    Stored(SignIn),
}

/// Sign-in with a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignIn {
    /// The environment variable of a key that is used without sign-in.
    pub variable: Option<String>,
    /// Whether clients should ask their users to sign in.
    pub is_required: bool,
    /// Its OAuth endpoints, if it has any.
    pub oauth: Option<OAuth>,
}

/// OAuth 2 endpoints and client of a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OAuth {
    /// The OAuth client id of Raddle at the provider.
    pub client_id: String,
    /// URL of the token endpoint.
    pub token_url: String,
    /// Authorization page for browsers on this machine.
    pub authorize_url: Option<String>,
    /// URL of the device authorization endpoint.
    pub device_url: Option<String>,
    /// Requested scopes of the tokens.
    pub scopes: Vec<String>,
    /// The redirect port of the browser flow; any free port if it is not set.
    pub redirect_port: Option<u16>,
}

/// A command that prints a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyCommand {
    /// Its path, or its name.
    pub program: String,
    /// Its arguments, without the program.
    pub args: Vec<String>,
    /// Working directory of the command.
    pub cwd: PathBuf,
    /// The environment variables that it gets in addition to the harmless ones.
    pub env_vars: Vec<String>,
    /// Timeout of the command.
    pub timeout_ms: Option<u32>,
    /// How long its key is used; 0 for as long as the vendor accepts it.
    pub refresh_interval_ms: Option<u32>,
}

/// A text that is redacted in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}
