//! Server mode: threads as tools of an MCP server.
//!
//! [`serve`] speaks MCP over one connection and offers two tools, with the names and arguments that
//! clients of Codex use: `codex` starts a thread, and `codex-reply` continues it. A [`TurnRunner`]
//! runs the turns. Its approval requests reach the client as elicitations.
//!
//! The envelope and the connection are those of `raddle-rpc`. The server half of `rmcp` would add
//! the types and schemas of every method of MCP to the binary, for three methods that are used.

mod arguments;
mod call;
mod call_context;
mod form;
mod peer;
mod session;
mod tool_list;
mod turn_runner;

pub use call_context::CallContext;
pub use form::{Form, FormAnswer, FormChoice, FormField};
pub use session::serve;
pub use turn_runner::{NewThread, ThreadTarget, TurnReport, TurnRequest, TurnRunner};
