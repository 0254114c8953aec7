//! The test of one server: a start as a thread would make it, and what the server offers then.

use std::sync::Arc;
use std::time::{Duration, Instant};

use raddle_config::McpServer;
use raddle_core::Settings;
use rmcp::model::PaginatedRequestParams;
use rmcp::{Peer, RoleClient};
use tokio::time::timeout;

use super::instance::{InstanceState, Session};
use super::plain_text::plain_text;
use super::registry::{McpRegistry, resources};

/// Longest name or version of a server.
const NAME_BYTES_MAX: usize = 200;

/// Wait for the lists that a server offers beside its tools.
const LISTS_TIMEOUT: Duration = Duration::from_secs(5);

/// Pages of a list of prompts that are requested.
const PAGES_MAX: usize = 100;

/// Result of the test of an MCP server.
#[derive(Debug)]
pub struct ServerTest {
    /// Name of the server in the configuration.
    pub name: String,
    /// Time until it had listed its tools, or had failed.
    pub duration: Duration,
    /// Its offer, or the reason why it cannot be used.
    pub outcome: Result<ServerOffer, ServerFailure>,
}

/// Everything that a connected server offers.
#[derive(Debug)]
pub struct ServerOffer {
    /// Revision of the protocol.
    pub revision: Option<String>,
    /// Name and version, as the server reports them.
    pub implementation: Option<(String, String)>,
    /// Names by which the model knows the tools.
    pub tools: Vec<String>,
    /// Number of resources.
    pub resources: usize,
    /// Number of prompts.
    pub prompts: usize,
}

/// Reason why a server cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct ServerFailure {
    /// The error, with the end of the server's stderr.
    pub cause: String,
    /// Remedy for the user.
    pub advice: &'static str,
}

impl McpRegistry {
    /// Starts a server as a thread with these settings would, asks it for what it offers, and stops
    /// it.
    pub async fn test(&self, settings: &Settings, server: &Arc<McpServer>) -> ServerTest {
        let began = Instant::now();
        let instance = self.start_alone(server, settings);
        let state = instance.settled().await;
        let duration = began.elapsed();
        let outcome = match state {
            InstanceState::Ready(session) => Ok(offer(&session).await),
            InstanceState::Failed(failure) => Err(ServerFailure {
                cause: failure.text.clone(),
                advice: failure.advice,
            }),
            InstanceState::Starting | InstanceState::Restarting(_) | InstanceState::Stopped => {
                Err(ServerFailure {
                    cause: "it was stopped".to_owned(),
                    advice: "run the test again",
                })
            }
        };
        instance.stop().await;
        ServerTest {
            name: server.name.clone(),
            duration,
            outcome,
        }
    }
}

async fn offer(session: &Session) -> ServerOffer {
    let info = session.peer.peer_info();
    let implementation = info.as_ref().and_then(|it| it.server_info.as_ref());
    let plain = |text: &str| plain_text(text, NAME_BYTES_MAX);
    let capabilities = info.as_ref().map(|it| &it.capabilities);
    let has_prompts = capabilities.is_some_and(|it| it.prompts.is_some());
    let mut offer = ServerOffer {
        revision: info
            .as_ref()
            .map(|it| plain(&it.protocol_version.to_string())),
        implementation: implementation.map(|it| (plain(&it.name), plain(&it.version))),
        tools: session.tools.all().map(|it| it.spec.name.clone()).collect(),
        resources: 0,
        prompts: 0,
    };
    if session.has_resources
        && let Ok((resources, _)) = timeout(LISTS_TIMEOUT, resources(&session.peer)).await
    {
        offer.resources = resources.len();
    }
    if has_prompts && let Ok(prompts) = timeout(LISTS_TIMEOUT, count_prompts(&session.peer)).await {
        offer.prompts = prompts;
    }
    offer
}

async fn count_prompts(peer: &Peer<RoleClient>) -> usize {
    let (mut count, mut cursor) = (0, None);
    for _ in 0..PAGES_MAX {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let Ok(page) = peer.list_prompts(Some(params)).await else {
            break;
        };
        count += page.prompts.len();
        cursor = page.next_cursor.filter(|it| !it.is_empty());
        if cursor.is_none() {
            break;
        }
    }
    count
}
