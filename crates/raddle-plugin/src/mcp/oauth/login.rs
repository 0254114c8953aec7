//! A login: the user allows access in a browser, which is redirected to a port of this machine.

use futures_util::future::BoxFuture;
use raddle_config::{McpCallback, McpClientAuth, McpOauth};
use raddle_model::oauth::{self, PkcePair, RedirectAnswer, RedirectListener};

use super::super::http::parse_url;
use super::discovery::{IssuerMetadata, discover};
use super::error::OauthError;
use super::fetcher::Fetcher;
use super::grant::{self, ClientAuth, OauthClient};
use super::store::ServerCredential;
use super::tokens::{ServerTokens, expiry};

/// The choices for a login.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoginOptions {
    /// The settings of the server.
    pub(crate) oauth: McpOauth,
    /// The `WWW-Authenticate` of the server's response, if it is known.
    pub(crate) challenge: Option<String>,
}

/// A login that has started.
pub(crate) struct StartedLogin {
    /// The page to open in a browser on this machine.
    pub(crate) page: String,
    /// Ends when the tokens are stored. Dropping it cancels the login.
    pub(crate) end: BoxFuture<'static, Result<(), OauthError>>,
}

/// Starts a login at an MCP server. The tokens are stored with those of `tokens`.
pub(crate) async fn start_login(
    tokens: &ServerTokens,
    options: LoginOptions,
) -> Result<StartedLogin, OauthError> {
    let url = tokens.url().to_owned();
    let server = parse_url(&url)?;
    let fetcher = Fetcher::new(&server, tokens.client()).await;
    let LoginOptions { oauth, challenge } = options;
    let wanted = oauth.issuer.as_deref();
    let discovery = discover(&fetcher, &server, challenge.as_deref(), wanted).await?;
    let scopes = match oauth.scopes.is_empty() {
        true => discovery.scopes,
        false => Some(oauth.scopes.join(" ")),
    };
    let issuer = discovery.issuer;
    // The browser is not sent to an address that Raddle would not call.
    fetcher.check(&issuer.authorization_endpoint)?;
    let McpCallback { host, port, path } = oauth.callback.unwrap_or_default();
    let listener = RedirectListener::bind_address(&host, port, &path).await;
    let listener = listener.map_err(OauthError::Listen)?;
    let supported = issuer.token_endpoint_auth_methods_supported.as_deref();
    let client = match oauth.client_id {
        Some(id) => OauthClient {
            id,
            auth: match (oauth.client_secret.is_some(), oauth.client_auth) {
                (true, Some(McpClientAuth::Basic)) => ClientAuth::Basic,
                (true, Some(McpClientAuth::Post)) => ClientAuth::Post,
                (has_secret, _) => ClientAuth::of(has_secret, supported),
            },
            secret: oauth.client_secret,
        },
        None => grant::register(&fetcher, &issuer, listener.uri(), scopes.as_deref()).await?,
    };
    let request = AuthorizationRequest {
        url,
        issuer,
        client,
        scopes,
        resource: oauth.resource.or(discovery.resource),
        proof: PkcePair::new().map_err(OauthError::Random)?,
        state: oauth::random_token().map_err(OauthError::Random)?,
        redirect_uri: listener.uri().to_owned(),
    };
    let page = request.page();
    let tokens = tokens.clone();
    Ok(StartedLogin {
        page,
        end: Box::pin(async move {
            let answer = listener.answer(&request.state).await?;
            let credential = request.redeem(&fetcher, answer).await?;
            tokens.store(credential).await
        }),
    })
}

/// A request for the user's permission.
struct AuthorizationRequest {
    url: String,
    issuer: IssuerMetadata,
    client: OauthClient,
    scopes: Option<String>,
    resource: Option<String>,
    proof: PkcePair,
    state: String,
    redirect_uri: String,
}

impl AuthorizationRequest {
    /// Returns the page on which the user gives permission.
    fn page(&self) -> String {
        let mut query = vec![
            ("response_type", "code"),
            ("client_id", &*self.client.id),
            ("redirect_uri", &self.redirect_uri),
            ("code_challenge", &self.proof.challenge),
            ("code_challenge_method", "S256"),
            ("state", &self.state),
        ];
        if let Some(scopes) = &self.scopes {
            query.push(("scope", scopes));
        }
        if let Some(resource) = &self.resource {
            query.push(("resource", resource));
        }
        oauth::address(&self.issuer.authorization_endpoint, &query)
    }

    /// Checks that the answer is of the issuer that was asked.
    fn check_issuer(&self, answer: &RedirectAnswer) -> Result<(), OauthError> {
        let is_named = self.issuer.authorization_response_iss_parameter_supported == Some(true);
        let is_right = match &answer.issuer {
            Some(issuer) => self.issuer.issuer.as_ref().is_none_or(|it| it == issuer),
            None => !is_named,
        };
        match is_right {
            true => Ok(()),
            false => Err(OauthError::OtherIssuer {
                issuer: answer.issuer.clone().unwrap_or_default(),
            }),
        }
    }

    /// Exchanges the code for tokens.
    async fn redeem(
        self,
        fetcher: &Fetcher,
        answer: RedirectAnswer,
    ) -> Result<ServerCredential, OauthError> {
        self.check_issuer(&answer)?;
        let mut form = vec![
            ("grant_type", "authorization_code"),
            ("code", &*answer.code),
            ("redirect_uri", &self.redirect_uri),
            ("code_verifier", &self.proof.verifier),
        ];
        if let Some(resource) = &self.resource {
            form.push(("resource", resource));
        }
        let token_url = &self.issuer.token_endpoint;
        let issued = grant::request_tokens(fetcher, token_url, &self.client, &form).await?;
        Ok(ServerCredential {
            url: self.url,
            access: issued.access,
            refresh: issued.refresh,
            expires_at: expiry(issued.expires_in),
            token_url: self.issuer.token_endpoint,
            resource: self.resource,
            client: self.client,
        })
    }
}
