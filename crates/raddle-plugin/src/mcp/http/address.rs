//! Addresses of MCP servers, and the redirects that are followed.

use hyper::header::{HeaderMap, LOCATION};
use hyper::{StatusCode, Uri};
use raddle_model::redacted;

use super::error::HttpError;

/// Parses the URL of a server.
pub(crate) fn parse_url(url: &str) -> Result<Uri, HttpError> {
    let error = |what| HttpError::Url {
        url: redacted(url),
        what,
    };
    let uri: Uri = url
        .parse()
        .map_err(|_| error("write one like https://example.com/mcp"))?;
    match uri.scheme_str() {
        Some("https" | "http") if uri.host().is_some_and(|it| !it.is_empty()) => Ok(uri),
        _ => Err(error("it must begin with https:// or http://")),
    }
}

/// Returns the address that a response redirects to; `None` for any other response. A redirect that
/// leaves the origin, or that would drop the body, is an error: headers with credentials and the
/// session go to the configured origin only.
pub(super) fn redirect_target(
    current: &Uri,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<Option<Uri>, HttpError> {
    let location = headers.get(LOCATION).and_then(|it| it.to_str().ok());
    let Some(location) = location.filter(|_| status.is_redirection()) else {
        return Ok(None);
    };
    let error = |what| HttpError::Redirect {
        location: redacted(location),
        what,
    };
    let target = resolve(current, location).ok_or_else(|| error("which is no address"))?;
    if !is_same_origin(current, &target) {
        return Err(error(
            "which is another origin; if you trust it, set `url` to that address",
        ));
    }
    match status {
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => Ok(Some(target)),
        _ => Err(error(
            "in a way that loses the message; set `url` to that address",
        )),
    }
}

/// Returns whether two addresses have the same scheme, host and port.
pub(crate) fn is_same_origin(one: &Uri, other: &Uri) -> bool {
    let host = |it: &Uri| it.host().unwrap_or_default().to_ascii_lowercase();
    one.scheme() == other.scheme() && host(one) == host(other) && port(one) == port(other)
}

/// Returns scheme, host and port of an address, as in `https://example.com`.
pub(crate) fn origin(uri: &Uri) -> String {
    let scheme = uri.scheme_str().unwrap_or_default();
    let host = uri.host().unwrap_or_default();
    match uri.port_u16() {
        Some(port) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{host}"),
    }
}

/// Returns the port of an address, or the default one of its scheme.
pub(crate) fn port(uri: &Uri) -> u16 {
    let default_port = match uri.scheme_str() {
        Some("https") => 443,
        _ => 80,
    };
    uri.port_u16().unwrap_or(default_port)
}

/// Resolves a reference against the address of the response that contains it.
fn resolve(base: &Uri, location: &str) -> Option<Uri> {
    let location = location.split('#').next().unwrap_or_default();
    let scheme_end = location.find(':').unwrap_or(location.len());
    let path_start = location.find(['/', '?']).unwrap_or(location.len());
    let absolute = if scheme_end < path_start {
        location.to_owned()
    } else if location.starts_with("//") {
        format!("{}:{location}", base.scheme_str()?)
    } else if location.starts_with('/') {
        format!("{}{location}", origin(base))
    } else if location.starts_with('?') {
        format!("{}{}{location}", origin(base), base.path())
    } else {
        let folder = base.path().rsplit_once('/').map_or("", |(it, _)| it);
        format!("{}{folder}/{location}", origin(base))
    };
    let target: Uri = absolute.parse().ok()?;
    target.host().is_some().then_some(target)
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn only_redirects_within_the_origin_are_followed() {
        let current: Uri = "https://a.org/b/mcp?c=d".parse().expect("an address");
        for (status, location, expected) in [
            (307, "/mcp/", Some("https://a.org/mcp/")),
            (308, "mcp/", Some("https://a.org/b/mcp/")),
            (307, "?e=f", Some("https://a.org/b/mcp?e=f")),
            (307, "https://A.org:443/x#y", Some("https://A.org:443/x")),
            (307, "//a.org/x", Some("https://a.org/x")),
            (302, "/mcp/", None),
            (307, "http://a.org/b/mcp", None),
            (307, "https://a.org:8443/b/mcp", None),
            (307, "https://a.org.evil.org/b/mcp", None),
            (307, "//evil.org/b/mcp", None),
            (307, "http://169.254.169.254/latest", None),
            (307, "file:///etc/passwd", None),
            (307, "", Some("https://a.org/b/")),
        ] {
            let status = StatusCode::from_u16(status).expect("a status");
            let location_value = HeaderValue::from_str(location).expect("a value");
            let headers = HeaderMap::from_iter([(LOCATION, location_value)]);
            let target = redirect_target(&current, status, &headers).ok().flatten();
            let target = target.map(|it| it.to_string());
            assert_eq!(target.as_deref(), expected, "{status} {location}");
        }
        let none = redirect_target(&current, StatusCode::OK, &HeaderMap::new());
        assert!(matches!(none, Ok(None)));
    }

    #[test]
    fn an_invalid_url_is_named_without_secrets() {
        for url in ["ftp://me:sekret@a.org", "a.org/mcp?key=sekret", "https://"] {
            let error = parse_url(url).expect_err(url).to_string();
            assert!(!error.contains("sekret"), "{error}");
        }
    }
}
