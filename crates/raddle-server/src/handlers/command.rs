//! `command/*`: commands run on behalf of the client, outside of any thread.

pub(crate) mod exec;
