//! A connection to an MCP server: the process or URL behind it, and the handshake.

use std::sync::Arc;
use std::time::Duration;

use raddle_config::{McpServer, McpTransport};
use raddle_console::is_plain;
use raddle_core::Settings;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::{ClientLifecycleMode, RoleClient, ServiceError, serve_client_with_lifecycle};
use tokio::time::{Instant, timeout, timeout_at};

use super::handler::Handler;
use super::http::{self, HttpClient, HttpError};
use super::launch::{LaunchDeps, LaunchError};
use super::login;
use super::stdio::StdioTransport;
use crate::process::{HELD_WAIT, Interruption, NetworkAccess, ProcessGuard, SandboxedProcess};
use crate::stderr_log::{StderrLog, StderrOrigin};

/// Time for a server to exit after its stdin is closed, before it is ended.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Reason why there is no connection to a server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error("the handshake failed: {}", handshake_text(.0))]
    Handshake(#[from] Box<ClientInitializeError>),
    #[error("it ended during the handshake{0}")]
    Ended(StderrEnd),
    #[error("its tools cannot be listed: {0}")]
    Tools(#[from] ServiceError),
    #[error(
        "it did not connect within {} s (`startup_timeout_sec` sets this limit){stderr}",
        limit.as_secs()
    )]
    TimedOut { limit: Duration, stderr: StderrEnd },
    #[error("it must start again in another sandbox")]
    Outdated,
    #[error("it requires a login: run `raddle mcp login {name}`")]
    NeedsLogin { name: String },
    #[error("its address cannot be used: {0}")]
    Address(#[from] HttpError),
    #[error("its header `{header}` needs the environment variable {variable}, which is not set")]
    NoVariable { header: String, variable: String },
    #[error("the managed policy keeps the network off")]
    NetworkOff,
}

impl ConnectError {
    /// Returns what the user can do.
    pub(crate) fn advice(&self) -> &'static str {
        match self {
            Self::Launch(LaunchError::Program { .. }) => {
                "install the program, or set `command` to its path, outside of the folders that \
                 the agent may write"
            }
            Self::Launch(LaunchError::WholeDisk) => "go to another folder",
            Self::Launch(LaunchError::Writable(_)) => {
                "keep plugins outside of the folders that the agent may write"
            }
            Self::Launch(_) => "run `raddle doctor`, which checks the sandbox and the folders",
            Self::Handshake(_) => {
                "check that `command` and `args` start an MCP server on stdio, or that `url` is \
                 the endpoint of one"
            }
            Self::Ended(_) => {
                "run the command in this folder yourself. Here it runs in the sandbox, and has the \
                 variables of `env` and `env_vars` beside the usual ones"
            }
            Self::Tools(_) => "update the server, or report the error to its authors",
            Self::TimedOut { .. } => {
                "test it again, if it was downloading packages; otherwise raise \
                 `startup_timeout_sec`"
            }
            Self::Outdated => "test it again",
            Self::NeedsLogin { .. } => "log in, and test it again",
            Self::Address(_) => "correct `url`",
            Self::NoVariable { .. } => "set the variable where Raddle is started",
            Self::NetworkOff => "ask the operator of this machine for the network",
        }
    }
}

/// Last lines of a server's stderr, as a part of an error.
#[derive(Clone, Debug, Default)]
pub(crate) struct StderrEnd(String);

impl std::fmt::Display for StderrEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.trim() {
            "" => Ok(()),
            text => {
                let text: String = text.chars().filter(|it| is_plain(*it)).collect();
                write!(f, "; it wrote: {text}")
            }
        }
    }
}

/// A connected server.
pub(crate) struct Connection {
    pub(crate) service: RunningService<RoleClient, Handler>,
    pub(crate) process: Option<OpenProcess>,
    /// Time until which it must list its tools.
    pub(crate) deadline: Instant,
}

/// The process of a connected server. Dropping it ends the process.
pub(crate) struct OpenProcess {
    guard: ProcessGuard,
    stderr: StderrLog,
}

impl OpenProcess {
    /// Returns the last lines of stderr.
    pub(crate) fn stderr_end(&self) -> StderrEnd {
        StderrEnd(self.stderr.last_lines())
    }

    /// Waits until the process has ended.
    pub(crate) async fn ended(&mut self) {
        self.guard.ended().await;
    }

    /// Waits until the process should be started again, because its sandbox no longer fits the
    /// files that approved commands hold.
    pub(crate) async fn outdated(&self) {
        self.guard.outdated().await;
    }

    /// Whether its sandbox fits the files that approved commands hold.
    pub(crate) async fn fits(&self) -> bool {
        self.guard.fits().await
    }

    /// Waits until the process ends or should be started again.
    async fn interrupted(&mut self) -> Interruption {
        self.guard.interrupted().await
    }

    /// Waits until the process has ended and all of its stderr was read.
    async fn drained(&mut self) {
        self.ended().await;
        self.stderr.ended().await;
    }

    /// Waits until the process ends by itself, and ends it if that takes too long. Its stdin is
    /// closed.
    pub(crate) async fn end(mut self) {
        if timeout(EXIT_TIMEOUT, self.ended()).await.is_err() {
            self.guard.end();
            self.ended().await;
        }
    }
}

/// Connects to a server for threads with these settings, before the deadline. The process of a
/// server gets more time if it had to wait for files that approved commands hold.
pub(crate) async fn connect(
    deps: &Arc<LaunchDeps>,
    server: &Arc<McpServer>,
    settings: &Arc<Settings>,
    mut handler: Handler,
    mut deadline: Instant,
) -> Result<Connection, ConnectError> {
    let timed_out = |stderr| ConnectError::TimedOut {
        limit: server.startup_timeout,
        stderr,
    };
    match &server.transport {
        McpTransport::Http { url, .. } => {
            let connected = connect_url(deps, server, url, handler, deadline);
            let connected = timeout_at(deadline, connected).await;
            connected.unwrap_or_else(|_| Err(timed_out(StderrEnd::default())))
        }
        McpTransport::Stdio { .. } => {
            // The wait for files that approved commands hold does not count.
            let start_deadline = deadline + HELD_WAIT;
            let started = timeout_at(start_deadline, deps.start(server, settings)).await;
            let SandboxedProcess {
                input,
                stdout,
                stderr,
                guard,
                held_wait,
            } = started.map_err(|_| timed_out(StderrEnd::default()))??;
            deadline += held_wait;
            let mut process = OpenProcess {
                guard,
                stderr: StderrLog::follow(StderrOrigin::McpServer, server.name.clone(), stderr),
            };
            let (transport, output) = StdioTransport::new(server.name.clone(), input, stdout);
            handler.output = Some(output);
            let lifecycle = lifecycle();
            let handshake = serve_client_with_lifecycle(handler, transport, lifecycle);
            let service = tokio::select! {
                biased;
                service = timeout_at(deadline, handshake) => service,
                end = process.interrupted() => {
                    return Err(match end {
                        Interruption::Ended => {
                            // The end may be noticed before the last lines.
                            let _ = timeout(EXIT_TIMEOUT, process.drained()).await;
                            ConnectError::Ended(process.stderr_end())
                        }
                        Interruption::Outdated => ConnectError::Outdated,
                    });
                }
            };
            let service = match service {
                Ok(Ok(service)) => service,
                Ok(Err(error)) => {
                    // A server that ends closes its output first; its stderr says why it ended.
                    let ended = timeout(EXIT_TIMEOUT, process.drained()).await;
                    return Err(match ended {
                        Ok(()) => ConnectError::Ended(process.stderr_end()),
                        Err(_) => Box::new(error).into(),
                    });
                }
                Err(_) => return Err(timed_out(process.stderr_end())),
            };
            Ok(Connection {
                service,
                process: Some(process),
                deadline,
            })
        }
    }
}

/// Connects to a server that has a URL.
async fn connect_url(
    deps: &LaunchDeps,
    server: &McpServer,
    url: &str,
    handler: Handler,
    deadline: Instant,
) -> Result<Connection, ConnectError> {
    let operator = deps.starter.operator.clone();
    let network = tokio::task::spawn_blocking(move || operator.network()).await;
    if matches!(network, Ok(NetworkAccess::None) | Err(_)) {
        return Err(ConnectError::NetworkOff);
    }
    let headers = headers(server)?;
    let mut client = HttpClient::new(deps.client.clone());
    if !login::has_token(server)
        && let Ok(tokens) = login::tokens(&deps.home, server, deps.client.clone())
    {
        client = client.with_tokens(Arc::new(tokens));
    }
    let transport = http::connect(client.clone(), url, &headers)?;
    let handshake = serve_client_with_lifecycle(handler, transport, lifecycle());
    match handshake.await {
        Ok(service) => Ok(Connection {
            service,
            process: None,
            deadline,
        }),
        Err(error) => match client.challenge().is_some() || error.is_authorization_required() {
            true => Err(ConnectError::NeedsLogin {
                name: server.name.clone(),
            }),
            false => Err(Box::new(error).into()),
        },
    }
}

/// Returns the headers that the configuration sets for a server.
pub(super) fn headers(server: &McpServer) -> Result<Vec<(String, String)>, ConnectError> {
    let McpTransport::Http {
        bearer_token_env_var,
        headers,
        env_headers,
        ..
    } = &server.transport
    else {
        return Ok(Vec::new());
    };
    let variable = |header: &str, variable: &str| {
        std::env::var(variable).map_err(|_| ConnectError::NoVariable {
            header: header.to_owned(),
            variable: variable.to_owned(),
        })
    };
    let fixed = headers
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()));
    let mut all: Vec<(String, String)> = fixed.collect();
    for (name, from) in env_headers {
        all.push((name.clone(), variable(name, from)?));
    }
    if let Some(from) = bearer_token_env_var {
        let token = variable("Authorization", from)?;
        all.push(("Authorization".to_owned(), format!("Bearer {token}")));
    }
    Ok(all)
}

/// Describes the failure of a handshake, without the type names of transports.
fn handshake_text(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => handshake_text(fallback),
        ClientInitializeError::TransportError { error, .. } => {
            let text = error.error.to_string();
            text.trim_start_matches("Client error: ").to_owned()
        }
        error => error.to_string(),
    }
}

/// Returns the order of the handshakes: that of the current revision first, then that of the
/// previous ones.
pub(super) fn lifecycle() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}
