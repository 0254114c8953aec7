pub(crate) mod batch_write;
pub(crate) mod mcp_server;
pub(crate) mod read;
pub(crate) mod value;
