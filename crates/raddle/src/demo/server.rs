//! A server of the demo: a child process that speaks on its stdin and stdout.

use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use raddle_client::{
    Client, Connection, ConnectionLimits, DeferredAnswers, Dialer, Options, ReconnectPolicy,
    ServerAddress,
};
use raddle_rpc::pipes;
use tokio::process::{Child, Command};

use super::folders::DemoFolders;

/// How long the server may take to end after its stdin is closed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Environment variables that the server gets. It gets no others, so no setting of the user and no
/// key counts here.
const VARIABLES: [&str; 3] = ["PATH", "LANG", "LC_ALL"];

/// A running server, and the connection to it until the client takes it. Dropping it kills the
/// server, and so does the end of this process, which closes its stdin.
#[derive(Debug)]
pub(super) struct DemoServer {
    child: Child,
    connection: Arc<Mutex<Option<Connection>>>,
}

impl DemoServer {
    /// Starts a server in the folders, with the model at this URL.
    pub(super) fn start(folders: &DemoFolders, base_url: &str) -> Result<Self> {
        let program = std::env::current_exe().context("cannot find the path of this program")?;
        let base_url = format!("model_providers.mock.base_url='{base_url}'");
        let mut command = Command::new(program);
        command
            .args(["app-server", "--recovery", "continue"])
            .args(["-c", "model=mock/mock"])
            .args(["-c", base_url.as_str()])
            .args(["-c", "sandbox_mode=read-only"])
            .args(["-c", "approval_policy=on-request"])
            .env_clear()
            .envs(
                VARIABLES
                    .iter()
                    .filter_map(|it| Some((it, std::env::var_os(it)?))),
            )
            .env("HOME", folders.home())
            .env("RADDLE_HOME", folders.home())
            .env("TMPDIR", folders.temporary())
            .env("RADDLE_LOG", "error")
            .current_dir(folders.work())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C goes to this process, which then stops the server.
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn().context("cannot start the server")?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the server has no pipes").into());
        };
        let limits = ConnectionLimits::default();
        let connection = pipes(stdout.into_owned_fd()?, stdin.into_owned_fd()?, limits)?;
        let connection = Arc::new(Mutex::new(Some(connection)));
        Ok(Self { child, connection })
    }

    /// Connects a client, which never reconnects: the demo shows each server by itself.
    pub(super) async fn connect(&self) -> Result<Client> {
        let connection = self.connection.clone();
        let dialer = Dialer::new(move || {
            let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            let taken = connection.take();
            async move { taken.ok_or_else(|| io::Error::other("the connection is in use")) }
        });
        let mut options = Options::new("raddle-demo", env!("CARGO_PKG_VERSION"));
        options.reconnect = ReconnectPolicy::NEVER;
        let address = ServerAddress::Memory(dialer);
        let client = Client::connect(address, options, DeferredAnswers).await;
        client.context("the client cannot connect to the server")
    }

    /// Kills the server with SIGKILL, and waits until it is gone.
    pub(super) async fn kill(mut self) -> Result<()> {
        self.child
            .kill()
            .await
            .context("the server cannot be killed")
    }

    /// Waits until the server ends after its client has closed the connection.
    pub(super) async fn end(mut self) -> Result<()> {
        let ended = tokio::time::timeout(EXIT_TIMEOUT, self.child.wait()).await;
        match ended {
            Ok(ended) => ended.map(drop).context("the end of the server is unknown"),
            Err(_) => self.kill().await,
        }
    }
}
