//! The handlers: one file per method, named like it. `fs/readFile` is `handlers/fs/read_file.rs`.
//! [`handler`](crate::handler) describes their forms.

pub(crate) mod account;
pub(crate) mod command;
pub(crate) mod config;
pub(crate) mod config_requirements;
pub(crate) mod fs;
pub(crate) mod fuzzy_file_search;
pub(crate) mod initialize;
pub(crate) mod model;
pub(crate) mod permission_profile;
pub(crate) mod process;
pub(crate) mod review;
pub(crate) mod skills;
pub(crate) mod thread;
pub(crate) mod turn;
