//! The handlers: one file per method, named like it. `fs/readFile` is `handlers/fs/read_file.rs`.
//! [`handler`](crate::handler) describes their forms.

pub(crate) mod account;
pub(crate) mod app;
pub(crate) mod collaboration_mode;
pub(crate) mod command;
pub(crate) mod config;
pub(crate) mod config_requirements;
pub(crate) mod experimental_feature;
pub(crate) mod fs;
pub(crate) mod fuzzy_file_search;
pub(crate) mod hooks;
pub(crate) mod initialize;
pub(crate) mod mcp_server;
pub(crate) mod mcp_server_status;
pub(crate) mod model;
pub(crate) mod model_provider;
pub(crate) mod permission_profile;
pub(crate) mod plugin;
pub(crate) mod process;
pub(crate) mod review;
pub(crate) mod server;
pub(crate) mod skills;
pub(crate) mod thread;
pub(crate) mod thread_section;
pub(crate) mod turn;
