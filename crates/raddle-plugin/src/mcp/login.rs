//! Logins at MCP servers that have a URL.

use std::path::Path;

use raddle_config::{McpServer, McpTransport};
use raddle_core::ports::{McpError, McpLogin};
use raddle_model::ModelClient;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::connection::headers;
use super::http::HttpClient;
use super::oauth::{LoginOptions, OauthError, ServerTokens, StartedLogin, start_login};

/// Limit: logins at MCP servers that wait for the user; beyond it, a new one fails.
const LOGINS_MAX: usize = 16;

/// Each login listens on a port of this machine, so all of a process share the limit.
static OPEN_LOGINS: Semaphore = Semaphore::const_new(LOGINS_MAX);

/// Starts a login at a server. `home` is the folder of the credentials. Without scopes, those of
/// the configuration are requested, else those that the server asks for.
pub async fn log_in(
    home: &Path,
    server: &McpServer,
    scopes: Vec<String>,
    client: ModelClient,
) -> Result<McpLogin, McpError> {
    let tokens = tokens(home, server, client.clone())?;
    let permit = reserve()?;
    let mut options = LoginOptions {
        oauth: server.oauth.clone(),
        challenge: challenge(server, client).await,
    };
    if !scopes.is_empty() {
        options.oauth.scopes = scopes;
    }
    let StartedLogin { page, end } = start_login(&tokens, options).await.map_err(failed)?;
    Ok(McpLogin {
        page,
        end: Box::pin(async move {
            let _permit = permit;
            end.await.map_err(failed)
        }),
    })
}

/// Returns the challenge of a server to a request without a token. It may name the scopes to
/// request, and the address of the metadata.
async fn challenge(server: &McpServer, client: ModelClient) -> Option<String> {
    let McpTransport::Http { url, .. } = &server.transport else {
        return None;
    };
    let headers = headers(server).ok()?;
    HttpClient::new(client)
        .request_challenge(url, &headers)
        .await
}

/// Reserves one of the logins that may be open at once.
fn reserve() -> Result<SemaphorePermit<'static>, McpError> {
    OPEN_LOGINS.try_acquire().map_err(|_| {
        let why = format!("{LOGINS_MAX} logins are open; complete one of them, or try again later");
        McpError::Failed(why)
    })
}

/// Forgets the login at a server. Returns whether there was one.
pub async fn log_out(
    home: &Path,
    server: &McpServer,
    client: ModelClient,
) -> Result<bool, McpError> {
    tokens(home, server, client)?
        .log_out()
        .await
        .map_err(failed)
}

/// Whether the user is logged in at a server.
pub(super) async fn is_logged_in(home: &Path, server: &McpServer, client: ModelClient) -> bool {
    match tokens(home, server, client) {
        Ok(tokens) => tokens.is_logged_in().await.unwrap_or_default(),
        Err(_) => false,
    }
}

/// Whether the configuration has a token for a server.
pub(super) fn has_token(server: &McpServer) -> bool {
    let McpTransport::Http {
        bearer_token_env_var,
        headers,
        env_headers,
        ..
    } = &server.transport
    else {
        return false;
    };
    let is_token = |name: &String| name.eq_ignore_ascii_case("authorization");
    bearer_token_env_var.is_some() || headers.keys().chain(env_headers.keys()).any(is_token)
}

/// Returns the stored tokens of a server.
pub(super) fn tokens(
    home: &Path,
    server: &McpServer,
    client: ModelClient,
) -> Result<ServerTokens, McpError> {
    match &server.transport {
        McpTransport::Http { url, .. } => Ok(ServerTokens::new(home, &server.name, url, client)),
        McpTransport::Stdio { .. } => Err(McpError::NoLogin(server.name.clone())),
    }
}

fn failed(error: OauthError) -> McpError {
    McpError::Failed(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_logins_are_limited() {
        let mut open: Vec<_> = (0..LOGINS_MAX)
            .map(|_| reserve().expect("a login"))
            .collect();
        let refused = reserve().err().map(|it| it.to_string()).unwrap_or_default();
        assert!(refused.starts_with("16 logins are open"), "{refused}");
        open.pop();
        assert!(reserve().is_ok());
    }
}
