//! Discovery: which authorization server issues tokens for an MCP server, and its endpoints (RFC
//! 9728, RFC 8414 and OpenID Connect Discovery).

use hyper::Uri;
use serde::Deserialize;

use super::super::http::{challenge_parameter, is_same_origin, origin, parse_url};
use super::error::OauthError;
use super::fetcher::Fetcher;

/// Metadata of a protected resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct ResourceMetadata {
    resource: Option<String>,
    authorization_servers: Option<Vec<String>>,
    scopes_supported: Option<Vec<String>>,
}

/// Metadata of an authorization server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct IssuerMetadata {
    pub(super) issuer: Option<String>,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) registration_endpoint: Option<String>,
    code_challenge_methods_supported: Option<Vec<String>>,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    pub(super) authorization_response_iss_parameter_supported: Option<bool>,
}

/// The facts that a login needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Discovery {
    /// The resource that tokens are requested for, if the server names it.
    pub(super) resource: Option<String>,
    pub(super) issuer: IssuerMetadata,
    /// The scopes that the server asks for.
    pub(super) scopes: Option<String>,
}

/// Finds the authorization server of an MCP server. `challenge` is the `WWW-Authenticate` of its
/// response, if it sent one. `wanted` is the issuer that the configuration names.
pub(super) async fn discover(
    fetcher: &Fetcher,
    server: &Uri,
    challenge: Option<&str>,
    wanted: Option<&str>,
) -> Result<Discovery, OauthError> {
    let parameter = |name| challenge.and_then(|it| challenge_parameter(it, name));
    let named_url = parameter("resource_metadata").into_iter();
    let mut found = None;
    for url in named_url.chain(resource_urls(server)) {
        if let Some(metadata) = fetcher.get::<ResourceMetadata>(&url).await? {
            check_resource(&metadata, server, &url)?;
            found = Some(metadata);
            break;
        }
    }
    let is_legacy = found.is_none() && wanted.is_none();
    let ResourceMetadata {
        resource,
        authorization_servers,
        scopes_supported,
    } = found.unwrap_or_default();
    let issuer = selected_issuer(authorization_servers, wanted).map_err(|what| {
        let address = origin(server);
        OauthError::Metadata { address, what }
    })?;
    let issuer = issuer.unwrap_or_else(|| origin(server));
    let scopes = scopes_supported.filter(|it| !it.is_empty());
    Ok(Discovery {
        resource,
        issuer: issuer_metadata(fetcher, &issuer, is_legacy).await?,
        scopes: parameter("scope").or(scopes.map(|it| it.join(" "))),
    })
}

/// Returns the issuer to use: the wanted one, if the server names it or names none; else the first.
fn selected_issuer(
    named: Option<Vec<String>>,
    wanted: Option<&str>,
) -> Result<Option<String>, String> {
    let named = named.unwrap_or_default();
    let Some(wanted) = wanted else {
        return Ok(named.into_iter().next());
    };
    let is_wanted = |it: &String| it.trim_end_matches('/') == wanted.trim_end_matches('/');
    match named.is_empty() || named.iter().any(is_wanted) {
        true => Ok(Some(wanted.to_owned())),
        false => Err(format!(
            "it names {}, and not {wanted} of `oauth.authorization_server_issuer`",
            named.join(", ")
        )),
    }
}

async fn issuer_metadata(
    fetcher: &Fetcher,
    issuer: &str,
    is_legacy: bool,
) -> Result<IssuerMetadata, OauthError> {
    let uri = fetcher.check(issuer)?;
    for url in issuer_urls(&uri) {
        if let Some(metadata) = fetcher.get::<IssuerMetadata>(&url).await? {
            check_issuer(&metadata, issuer, is_legacy, &url)?;
            return Ok(metadata);
        }
    }
    match is_legacy {
        true => Ok(default_endpoints(&origin(&uri))),
        false => Err(OauthError::Metadata {
            address: issuer.to_owned(),
            what: "there is none".to_owned(),
        }),
    }
}

/// Returns the addresses at which the metadata of a resource may be, in order.
fn resource_urls(server: &Uri) -> Vec<String> {
    let base = format!("{}/.well-known/oauth-protected-resource", origin(server));
    match server.path().trim_end_matches('/') {
        "" => vec![base],
        path => vec![format!("{base}{path}"), base],
    }
}

/// Returns the addresses at which the metadata of an issuer may be, in order.
fn issuer_urls(issuer: &Uri) -> Vec<String> {
    let origin = origin(issuer);
    let path = issuer.path().trim_end_matches('/');
    let mut urls = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        urls.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    urls
}

/// Returns the endpoints of a server without metadata, as the revision 2025-03-26 defines them.
fn default_endpoints(origin: &str) -> IssuerMetadata {
    IssuerMetadata {
        authorization_endpoint: format!("{origin}/authorize"),
        token_endpoint: format!("{origin}/token"),
        registration_endpoint: Some(format!("{origin}/register")),
        ..IssuerMetadata::default()
    }
}

/// Rejects the metadata of another resource: its tokens would be sent to this server.
fn check_resource(metadata: &ResourceMetadata, server: &Uri, at: &str) -> Result<(), OauthError> {
    match &metadata.resource {
        Some(resource) if !covers(resource, server) => Err(OauthError::Metadata {
            address: at.to_owned(),
            what: format!("it is for {resource}"),
        }),
        _ => Ok(()),
    }
}

/// Returns whether a resource is the server, or contains it.
fn covers(resource: &str, server: &Uri) -> bool {
    let Ok(resource) = parse_url(resource) else {
        return false;
    };
    let folder = |uri: &Uri| format!("{}/", uri.path().trim_end_matches('/'));
    is_same_origin(&resource, server) && folder(server).starts_with(&folder(&resource))
}

/// Rejects metadata of another issuer, and an issuer without proof keys.
fn check_issuer(
    metadata: &IssuerMetadata,
    issuer: &str,
    is_legacy: bool,
    at: &str,
) -> Result<(), OauthError> {
    let trimmed = |it: &str| it.trim_end_matches('/').to_owned();
    let is_other = match &metadata.issuer {
        Some(it) => !is_legacy && trimmed(it) != trimmed(issuer),
        None => false,
    };
    let methods = metadata.code_challenge_methods_supported.as_ref();
    let has_proof = methods.is_some_and(|it| it.iter().any(|it| it == "S256"));
    let what = match (is_other, has_proof) {
        (true, _) => format!("it is for another issuer than {issuer}"),
        (_, false) => "it has no code_challenge_methods_supported with S256".to_owned(),
        _ => return Ok(()),
    };
    let address = at.to_owned();
    Err(OauthError::Metadata { address, what })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().expect("an address")
    }

    #[test]
    fn metadata_is_looked_for_where_the_standards_say() {
        assert_eq!(
            resource_urls(&uri("https://a.org/public/mcp")),
            [
                "https://a.org/.well-known/oauth-protected-resource/public/mcp",
                "https://a.org/.well-known/oauth-protected-resource",
            ]
        );
        assert_eq!(
            resource_urls(&uri("https://a.org:8443/")),
            ["https://a.org:8443/.well-known/oauth-protected-resource"]
        );
        assert_eq!(
            issuer_urls(&uri("https://b.org/tenant")),
            [
                "https://b.org/.well-known/oauth-authorization-server/tenant",
                "https://b.org/.well-known/openid-configuration/tenant",
                "https://b.org/tenant/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            issuer_urls(&uri("https://b.org")),
            [
                "https://b.org/.well-known/oauth-authorization-server",
                "https://b.org/.well-known/openid-configuration",
            ]
        );
    }

    #[test]
    fn the_configured_issuer_is_one_that_the_server_names() {
        let (first, second) = ("https://a.org", "https://b.org/");
        for (named, wanted, expected) in [
            (&[][..], None, Ok(None)),
            (&[first, second], None, Ok(Some(first))),
            (
                &[first, second],
                Some("https://b.org"),
                Ok(Some("https://b.org")),
            ),
            (&[], Some(second), Ok(Some(second))),
            (&[first], Some(second), Err(())),
        ] {
            let names = named.iter().map(|it| (*it).to_owned()).collect();
            let selected = selected_issuer(Some(names), wanted);
            let selected = selected.map_err(|_| ());
            assert_eq!(
                selected,
                expected.map(|it| it.map(str::to_owned)),
                "{named:?}"
            );
        }
    }

    #[test]
    fn a_resource_covers_its_folder() {
        for (resource, expected) in [
            ("https://a.org/public/mcp", true),
            ("https://a.org/public/mcp/", true),
            ("https://a.org/public", true),
            ("https://A.org", true),
            ("https://a.org:443/", true),
            ("https://a.org/pub", false),
            ("https://a.org/public/mcp/more", false),
            ("https://a.org:8443/public/mcp", false),
            ("http://a.org/public/mcp", false),
            ("https://evil.org/public/mcp", false),
            ("nonsense", false),
        ] {
            let is_covered = covers(resource, &uri("https://a.org/public/mcp"));
            assert_eq!(is_covered, expected, "{resource}");
        }
    }

    #[test]
    fn an_issuer_is_the_one_that_was_named_and_has_proof_keys() {
        for (issuer, methods, is_legacy, expected) in [
            (Some("https://b.org"), Some("S256"), false, true),
            (Some("https://b.org/"), Some("S256"), false, true),
            (None, Some("S256"), false, true),
            (Some("https://evil.org"), Some("S256"), false, false),
            (Some("https://evil.org"), Some("S256"), true, true),
            (Some("https://b.org"), Some("plain"), false, false),
            (Some("https://b.org"), None, false, false),
        ] {
            let metadata = IssuerMetadata {
                issuer: issuer.map(str::to_owned),
                code_challenge_methods_supported: methods.map(|it| vec![it.to_owned()]),
                ..IssuerMetadata::default()
            };
            let checked = check_issuer(&metadata, "https://b.org", is_legacy, "https://b.org/x");
            assert_eq!(checked.is_ok(), expected, "{metadata:?}");
        }
    }
}
