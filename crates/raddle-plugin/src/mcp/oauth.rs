//! OAuth for MCP servers that have a URL: discovery, registration, a login in a browser, and
//! tokens that are stored in the home and renewed once for all threads and processes.
//!
//! ```text
//! let tokens = ServerTokens::new(home, name, url, model_client.clone());
//! let client = HttpClient::new(model_client).with_tokens(Arc::new(tokens.clone()));
//! let login = start_login(&tokens, LoginOptions::default()).await?;  // when it is required
//! open_in_browser(&login.page);
//! login.end.await?;
//! tokens.log_out().await?;
//! ```

mod discovery;
mod error;
mod fetcher;
mod grant;
mod login;
mod store;
#[cfg(test)]
mod tests;
mod tokens;

pub(crate) use error::OauthError;
pub(crate) use login::{LoginOptions, StartedLogin, start_login};
pub(crate) use tokens::ServerTokens;
