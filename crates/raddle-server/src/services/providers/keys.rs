//! Where the keys of providers come from.

use std::fmt;
use std::path::PathBuf;

/// Where a provider's key comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeySource {
    /// It takes none.
    #[default]
    None,
    /// From an environment variable.
    Environment {
        /// Its name.
        variable: String,
        /// How people get such a key, in the words of the configuration.
        instructions: Option<String>,
    },
    /// From a file.
    File(PathBuf),
    /// From what a command writes.
    Command(KeyCommand),
    /// From the configuration.
    Inline(Secret),
    /// From whoever signed in.
    Stored(SignIn),
}

/// How people sign in with a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignIn {
    /// The environment variable that holds a key while nobody is signed in.
    pub variable: Option<String>,
    /// Whether clients should ask their users to sign in.
    pub is_required: bool,
    /// Its pages, if it has any.
    pub oauth: Option<OAuth>,
}

/// What is known of a provider's pages to sign in, as OAuth 2 names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OAuth {
    /// Who we are to it.
    pub client_id: String,
    /// Where tokens are given.
    pub token_url: String,
    /// The page for browsers on this machine.
    pub authorize_url: Option<String>,
    /// Where codes for other devices are given.
    pub device_url: Option<String>,
    /// What the tokens should be good for.
    pub scopes: Vec<String>,
    /// The port that a browser is sent back to; any that is free if none is said.
    pub redirect_port: Option<u16>,
}

/// A command that writes a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyCommand {
    /// Its path, or its name.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The folder it is started in.
    pub cwd: PathBuf,
    /// The environment variables that it gets beside the harmless ones.
    pub env_vars: Vec<String>,
    /// How long it may take.
    pub timeout_ms: Option<u32>,
    /// How long what it wrote is used; 0 for as long as it is taken.
    pub refresh_interval_ms: Option<u32>,
}

/// A text that is not to be seen.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}
