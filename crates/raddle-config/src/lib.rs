//! Configuration: layers of files and settings, the model providers, and the presets.
//!
//! A [`Config`] is the configuration of a running server, reloaded when its files change. Its
//! [`State`] is the result of the last load; with a request's own `config` above it, that is an
//! [`EffectiveConfig`]. A [`Configuration`] is the same for the command line, without a server.
//! Files of a workspace are never a layer.
//!
//! The crate knows no connection. It reads and writes the files of the configuration, and calls no
//! vendor: [`Vendors`] is a port.
//!
//! Below: `raddle-core`, `raddle-protocol` and `raddle-sandbox`. Above: `raddle-server`,
//! `raddle-tools`, `raddle-providers`, `raddle-exec` and `raddle`.

mod approval;
pub mod budget;
pub mod clock;
pub mod command_variables;
mod commands;
mod config;
mod config_error;
mod edit;
mod effective;
mod hooks;
mod keys;
mod layer_view;
mod layers;
mod local_disk;
mod managed_plugins;
mod mcp_config;
mod mcp_servers;
pub mod models;
mod overrides;
mod paths;
pub mod permissions;
mod plugins;
mod private_file;
pub mod projects;
pub mod providers;
mod redaction;
mod sandbox;
mod sandbox_mode;
mod schema;
mod setting_error;
mod skill_file;
pub mod skills;
mod standalone;
mod store;
mod suggestions;
mod vendors;

pub use approval::APPROVAL_POLICY;
pub use commands::{CommandConfig, CommandConfigError};
pub use config::{Config, ConfigWriter, State};
pub use config_error::{ConfigError, ConfigWriteError, KeyError, KeyPathError};
pub use effective::{EffectiveConfig, letters, may_bound};
pub use hooks::{Hook, HookConfig, HookFileError, HookMatcher, HookSet, HookTrust};
pub use mcp_config::McpConfig;
pub use mcp_servers::{
    McpApproval, McpCallback, McpClientAuth, McpOauth, McpPlugin, McpProblem, McpServer,
    McpServers, McpTransport,
};
pub use overrides::Override;
pub use paths::Paths;
pub use plugins::{InstalledPlugin, PluginConfig};
pub use private_file::{PrivateFile, PrivateFileError};
pub use providers::{
    KeyCommand, KeySource, MOCK_BASE_URL, OAuth, Preset, Provider, ProviderChoice, ProviderError,
    Providers, Secret, SignIn,
};
pub use sandbox::{SandboxFolders, has_network, policy_of, read_only_policy, thread_policy};
pub use schema::schema;
pub use setting_error::{SettingError, quoted};
pub use skill_file::{
    SKILL_BYTES_MAX, SKILL_FILE, SKILL_NAME_BYTES_MAX, SkillHeading, SkillHeadingError,
};
pub use standalone::{ConfigModel, ConfigValue, Configuration, WrittenValue, presets};
pub use store::{PostgresStore, StoreSetting};
pub use vendors::{
    OfferedModel, PendingSignIn, SignInKind, SignInMethod, VendorRequestError, Vendors,
};
