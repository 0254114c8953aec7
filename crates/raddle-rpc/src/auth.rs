//! Authentication of websockets: a capability token, or a signed bearer token.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use constant_time_eq::constant_time_eq;
use hmac::{Hmac, KeyInit, Mac};
use hyper::header::{AUTHORIZATION, HeaderMap};
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// Credential that a websocket upgrade must carry.
#[derive(Clone, Debug)]
pub enum Auth {
    /// None. Allowed on loopback only, and only if requested explicitly.
    Open,
    /// A token with this SHA-256 digest.
    CapabilityToken {
        /// The digest of the token.
        sha256: [u8; 32],
    },
    /// An HS256 JSON Web Token. Its times are checked at the upgrade only: an open websocket stays
    /// open when its token expires.
    SignedBearer(SignedBearer),
}

/// Rules for signed tokens.
#[derive(Clone)]
pub struct SignedBearer {
    /// The shared key; at least 32 bytes.
    pub secret: Vec<u8>,
    /// Required `iss` of a token, if any.
    pub issuer: Option<String>,
    /// Required `aud` of a token, if any.
    pub audience: Option<String>,
    /// Maximum difference between the clocks.
    pub clock_skew: Duration,
    /// Maximum time from now to the `exp` of a token. It bounds how long a leaked token is valid.
    pub lifetime_max: Duration,
}

impl SignedBearer {
    /// Limit: time until the expiry of a signed token (`--ws-max-token-lifetime-seconds` changes
    /// it); beyond it, the server responds with 401.
    pub const LIFETIME_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);
}

impl std::fmt::Debug for SignedBearer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SignedBearer")
            .field("secret", &"…")
            .field("issuer", &self.issuer)
            .field("audience", &self.audience)
            .field("clock_skew", &self.clock_skew)
            .field("lifetime_max", &self.lifetime_max)
            .finish()
    }
}

/// Reason why an upgrade was rejected. The texts are part of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// The request has no `Authorization` header.
    #[error("missing websocket bearer token")]
    Missing,
    /// Not exactly one `Bearer` value.
    #[error("invalid authorization header")]
    Malformed,
    /// The token does not match the digest.
    #[error("invalid websocket bearer token")]
    WrongToken,
    /// Not a JSON Web Token, or not signed with this key.
    #[error("invalid websocket jwt")]
    WrongJwt,
    /// Its `exp` has passed.
    #[error("expired websocket jwt")]
    Expired,
    /// Its `exp` is later than `lifetime_max` allows.
    #[error(
        "websocket jwt lives too long: sign one whose exp is at most {seconds_max} seconds from now, or raise \
         --ws-max-token-lifetime-seconds"
    )]
    TooLong {
        /// Maximum seconds from now.
        seconds_max: u64,
    },
    /// Its `nbf` or `iat` is in the future.
    #[error("websocket jwt is not valid yet")]
    NotYet,
    /// Its `iss` is not the configured issuer.
    #[error("websocket jwt issuer mismatch")]
    WrongIssuer,
    /// Its `aud` does not name this server.
    #[error("websocket jwt audience mismatch")]
    WrongAudience,
}

impl Auth {
    /// Description of the required credential, for the operator's terminal.
    pub(crate) fn banner(&self) -> &'static str {
        match self {
            Self::Open => "none needed (--insecure-loopback)",
            Self::CapabilityToken { .. } => {
                "needed, as `Authorization: Bearer TOKEN`: the one of --ws-token-file or --ws-token-sha256"
            }
            Self::SignedBearer(_) => {
                "needed, as `Authorization: Bearer JWT`: signed with HS256 and the secret of --ws-shared-secret-file"
            }
        }
    }

    /// Checks the headers of an upgrade. Returns the token's subject, if it has one.
    pub fn check(
        &self,
        headers: &HeaderMap,
        now: SystemTime,
    ) -> Result<Option<Box<str>>, AuthError> {
        match self {
            Self::Open => Ok(None),
            Self::CapabilityToken { sha256 } => {
                let digest: [u8; 32] = Sha256::digest(bearer(headers)?.as_bytes()).into();
                if constant_time_eq(&digest, sha256) {
                    Ok(None)
                } else {
                    Err(AuthError::WrongToken)
                }
            }
            Self::SignedBearer(signed) => signed.check(bearer(headers)?, now),
        }
    }
}

/// Returns the only bearer token of the headers.
fn bearer(headers: &HeaderMap) -> Result<&str, AuthError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(AuthError::Missing)?;
    if values.next().is_some() {
        return Err(AuthError::Malformed);
    }
    let value = value.to_str().map_err(|_| AuthError::Malformed)?;
    let (scheme, token) = value.split_once(' ').ok_or(AuthError::Malformed)?;
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
        return Err(AuthError::Malformed);
    }
    Ok(token)
}

/// Valid Unix times in seconds: up to the end of the year 9999.
const TIMES: std::ops::RangeInclusive<f64> = 0.0..=253_402_300_799.0;

#[derive(Deserialize)]
struct Header {
    alg: String,
    /// Extensions that the server must understand. It understands none.
    crit: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Claims {
    exp: f64,
    nbf: Option<f64>,
    iat: Option<f64>,
    iss: Option<String>,
    aud: Option<Audience>,
    sub: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

impl SignedBearer {
    fn check(&self, token: &str, now: SystemTime) -> Result<Option<Box<str>>, AuthError> {
        let claims = self.verify(token).ok_or(AuthError::WrongJwt)?;
        let now = now
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs_f64();
        let skew = self.clock_skew.as_secs_f64();
        let times = [Some(claims.exp), claims.nbf, claims.iat];
        if !times.iter().flatten().all(|it| TIMES.contains(it)) {
            return Err(AuthError::WrongJwt);
        }
        if now > claims.exp + skew {
            return Err(AuthError::Expired);
        }
        if claims.exp > now + skew + self.lifetime_max.as_secs_f64() {
            return Err(AuthError::TooLong {
                seconds_max: self.lifetime_max.as_secs(),
            });
        }
        // A token signed in the future comes from a wrong clock, so its other times are not
        // reliable either.
        if [claims.nbf, claims.iat]
            .into_iter()
            .flatten()
            .any(|it| now + skew < it)
        {
            return Err(AuthError::NotYet);
        }
        if self.issuer.is_some() && self.issuer != claims.iss {
            return Err(AuthError::WrongIssuer);
        }
        if let Some(audience) = &self.audience {
            let is_named = match &claims.aud {
                None => false,
                Some(Audience::One(one)) => one == audience,
                Some(Audience::Many(many)) => many.contains(audience),
            };
            if !is_named {
                return Err(AuthError::WrongAudience);
            }
        }
        Ok(claims.sub)
    }

    /// Returns the claims of a token signed with this key by HS256. No other algorithm is
    /// supported.
    fn verify(&self, token: &str) -> Option<Claims> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let header: Header = part(header)?;
        if header.alg != "HS256" || header.crit.is_some() {
            return None;
        }
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).ok()?;
        mac.update(signed.as_bytes());
        mac.verify_slice(&URL_SAFE_NO_PAD.decode(signature).ok()?)
            .ok()?;
        part(claims)
    }
}

fn part<T: serde::de::DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    const NOW: u64 = 1_800_000_000;

    fn jwt(header: &str, claims: &str, key: &[u8]) -> String {
        let signed = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(header),
            URL_SAFE_NO_PAD.encode(claims)
        );
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any key");
        mac.update(signed.as_bytes());
        format!(
            "{signed}.{}",
            URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
        )
    }

    fn check(auth: &Auth, values: &[&str]) -> Result<Option<Box<str>>, AuthError> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(
                AUTHORIZATION,
                HeaderValue::from_str(value).expect("a header"),
            );
        }
        auth.check(&headers, UNIX_EPOCH + Duration::from_secs(NOW))
    }

    #[test]
    fn capability_tokens() {
        let auth = Auth::CapabilityToken {
            sha256: Sha256::digest(b"secret").into(),
        };
        assert_eq!(check(&auth, &["Bearer secret"]), Ok(None));
        assert_eq!(check(&auth, &["bEARER  secret "]), Ok(None));
        assert_eq!(check(&auth, &[]), Err(AuthError::Missing));
        assert_eq!(check(&auth, &["Bearer wrong"]), Err(AuthError::WrongToken));
        for malformed in ["secret", "Basic secret", "Bearer ", "Bearer"] {
            assert_eq!(
                check(&auth, &[malformed]),
                Err(AuthError::Malformed),
                "{malformed}"
            );
        }
        assert_eq!(
            check(&auth, &["Bearer secret", "Bearer secret"]),
            Err(AuthError::Malformed)
        );
    }

    #[test]
    fn signed_tokens() {
        let key = [7; 32];
        let auth = Auth::SignedBearer(SignedBearer {
            secret: key.to_vec(),
            issuer: Some("me".into()),
            audience: Some("raddle".into()),
            clock_skew: Duration::from_secs(30),
            lifetime_max: SignedBearer::LIFETIME_MAX,
        });
        let hs256 = r#"{"alg":"HS256","typ":"JWT"}"#;
        let later = NOW + 60;
        let good = format!(r#"{{"exp":{later},"iss":"me","aud":["x","raddle"],"sub":"alice"}}"#);
        let check_jwt = |header: &str, claims: &str, key: &[u8]| {
            check(&auth, &[&format!("Bearer {}", jwt(header, claims, key))])
        };

        assert_eq!(check_jwt(hs256, &good, &key), Ok(Some("alice".into())));
        assert_eq!(check_jwt(hs256, &good, &[8; 32]), Err(AuthError::WrongJwt));
        assert_eq!(
            check_jwt(r#"{"alg":"none"}"#, &good, &key),
            Err(AuthError::WrongJwt)
        );
        assert_eq!(
            check_jwt(r#"{"alg":"HS512"}"#, &good, &key),
            Err(AuthError::WrongJwt)
        );
        assert_eq!(
            check_jwt(r#"{"alg":"HS256","crit":["b64"]}"#, &good, &key),
            Err(AuthError::WrongJwt)
        );
        for (claims, error) in [
            (
                r#"{"iss":"me","aud":"raddle"}"#.to_owned(),
                AuthError::WrongJwt,
            ),
            (
                format!(r#"{{"exp":{},"iss":"me","aud":"raddle"}}"#, NOW - 31),
                AuthError::Expired,
            ),
            (
                format!(
                    r#"{{"exp":{later},"nbf":{},"iss":"me","aud":"raddle"}}"#,
                    NOW + 31
                ),
                AuthError::NotYet,
            ),
            (
                format!(r#"{{"exp":{later},"iss":"you","aud":"raddle"}}"#),
                AuthError::WrongIssuer,
            ),
            (
                format!(r#"{{"exp":{later},"iss":"me","aud":"other"}}"#),
                AuthError::WrongAudience,
            ),
            (
                format!(r#"{{"exp":{later},"iss":"me"}}"#),
                AuthError::WrongAudience,
            ),
        ] {
            assert_eq!(check_jwt(hs256, &claims, &key), Err(error), "{claims}");
        }
        let month = SignedBearer::LIFETIME_MAX.as_secs();
        let too_long = AuthError::TooLong { seconds_max: month };
        let with =
            |exp: u64, more: &str| format!(r#"{{"exp":{exp}{more},"iss":"me","aud":"raddle"}}"#);
        for (claims, error) in [
            (
                r#"{"exp":1e308,"iss":"me","aud":"raddle"}"#.to_owned(),
                AuthError::WrongJwt,
            ),
            (with(4_102_444_800, ""), too_long),
            (with(NOW + month + 31, ""), too_long),
            (
                with(later, &format!(r#","iat":{}"#, NOW + 31)),
                AuthError::NotYet,
            ),
            (with(later, r#","iat":1e308"#), AuthError::WrongJwt),
            (with(later, r#","iat":-1"#), AuthError::WrongJwt),
            (with(later, r#","nbf":-1e308"#), AuthError::WrongJwt),
            (with(later, r#","iat":"today""#), AuthError::WrongJwt),
        ] {
            assert_eq!(check_jwt(hs256, &claims, &key), Err(error), "{claims}");
        }
        for claims in [
            with(NOW + month + 29, ""),
            with(later, &format!(r#","iat":{NOW},"nbf":{NOW}"#)),
            with(later, r#","nbf":0"#),
        ] {
            assert!(check_jwt(hs256, &claims, &key).is_ok(), "{claims}");
        }
        assert_eq!(check(&auth, &["Bearer a.b"]), Err(AuthError::WrongJwt));
        let inside_skew = format!(r#"{{"exp":{},"iss":"me","aud":"raddle"}}"#, NOW - 29);
        assert!(check_jwt(hs256, &inside_skew, &key).is_ok());
    }
}
