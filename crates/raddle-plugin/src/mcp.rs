//! MCP servers as tools of the agent.

mod call;
mod call_result;
mod call_rounds;
mod connection;
mod elicitation;
#[cfg(test)]
mod fake_server;
mod handler;
mod http;
mod instance;
mod launch;
mod login;
mod message_values;
mod oauth;
mod plain_text;
mod registry;
mod search;
mod server_test;
mod stdio;
mod tool_changes;
mod tool_name;
mod tool_table;
mod tools;

pub(crate) use call_result::{CallFailure, tool_result};
pub(crate) use elicitation::{CallElicitations, CallUser, Elicitations, question};
pub use login::{log_in, log_out};
pub use registry::{McpRegistry, PluginServers};
pub use server_test::{ServerFailure, ServerOffer, ServerTest};
pub(crate) use tool_name::plugin_server_name;
pub use tools::McpTools;
pub(crate) use tools::is_server_call;
