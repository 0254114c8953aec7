//! MCP servers as tools of the agent.

mod backoff;
mod call;
mod call_result;
mod call_rounds;
mod connection;
mod elicitation;
mod handler;
mod http;
mod instance;
mod launch;
mod login;
mod oauth;
mod registry;
mod search;
mod stdio;
mod tool_name;
mod tool_table;
mod tools;

pub use launch::{NetworkAccess, Operator};
pub use login::{log_in, log_out};
pub use registry::{McpRegistry, Options};
pub use tools::McpTools;
