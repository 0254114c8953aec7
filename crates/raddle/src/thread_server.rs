//! A server of its own, for commands about a stored thread: only a server can write to a thread,
//! and it finds the server that has the thread loaded.

use anyhow::{Context, Result};
use raddle_client::{Client, Options, Program, RejectAll, ServerAddress, Stderr};

/// Starts a server and connects to it. It ends when the client closes.
pub(crate) async fn connect() -> Result<Client> {
    let program = std::env::current_exe().context("cannot find out which program this is")?;
    let mut server = Program::new(program, ["app-server", "--recovery", "interrupt"]);
    server.stderr = Stderr::Inherit;
    if std::env::var_os("RADDLE_LOG").is_none() {
        server.env.push(("RADDLE_LOG".into(), "error".into()));
    }
    let options = Options::new("raddle-thread", env!("CARGO_PKG_VERSION"));
    Ok(Client::connect(ServerAddress::Child(server), options, RejectAll).await?)
}
