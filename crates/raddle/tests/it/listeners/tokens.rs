//! Authentication of websockets.

use super::jwt::Jwt;
use super::{ORIGINS, check, expect_one_connection};
use crate::support::http;
use crate::support::server::TestServer;

#[test]
fn the_capability_token_is_required() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    std::fs::write(&file, "correct horse battery\n").expect("a file");
    let file = file.to_str().expect("text");
    let server = TestServer::start(&[
        "--listen",
        "ws://127.0.0.1:0",
        "--ws-auth",
        "capability-token",
        "--ws-token-file",
        file,
    ]);
    server.wait_for("token: needed, as `Authorization: Bearer TOKEN`: the one of --ws-token-file");
    let good = "Authorization: Bearer correct horse battery\r\n";
    let malformed = "invalid authorization header";
    let wrong = "invalid websocket bearer token";
    refuses_tokens(
        &server,
        &[
            ("", "missing websocket bearer token"),
            ("Authorization: \r\n", malformed),
            ("Authorization: Bearer\r\n", malformed),
            ("Authorization: Bearer \r\n", malformed),
            ("Authorization: Basic correct horse battery\r\n", malformed),
            ("Authorization: correct horse battery\r\n", malformed),
            ("Authorization: Bearer wrong\r\n", wrong),
            ("Authorization: Bearer correct horse batterz\r\n", wrong),
            (
                "Authorization: Bearer correct horse battery staple\r\n",
                wrong,
            ),
            ("Authorization: Bearer CORRECT HORSE BATTERY\r\n", wrong),
            ("Authorization: Bearer null\r\n", wrong),
            (&good.repeat(2), malformed),
            (&format!("{good}Authorization: Bearer wrong\r\n"), malformed),
            (&format!("Authorization: Bearer wrong\r\n{good}"), malformed),
        ],
    );
    // Health checks need no token.
    let address = server.address();
    check(
        address,
        &format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\n\r\n"),
        200,
    );
    // The metrics need the same token as a websocket.
    for (headers, status) in [
        ("", 401),
        ("Authorization: Bearer wrong\r\n", 401),
        (good, 200),
    ] {
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n");
        check(address, &request, status);
    }
    // A valid token does not make up for an origin or a foreign host.
    for origin in ORIGINS {
        let headers = format!("{origin}{good}");
        check(address, &http::upgrade(&address.to_string(), &headers), 403);
    }
    check(address, &http::upgrade("evil.test", good), 403);
    expect_one_connection(server, "authorization: bEARER correct horse battery\r\n");
}

#[test]
fn the_digest_of_a_token_will_do() {
    // The SHA-256 of `abc`, from the standard's own example.
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let server = TestServer::start(&[
        "--listen",
        "ws://127.0.0.1:0",
        "--ws-auth",
        "capability-token",
        "--ws-token-sha256",
        digest,
    ]);
    let of_digest = format!("Authorization: Bearer {digest}\r\n");
    refuses_tokens(
        &server,
        &[
            ("", "missing websocket bearer token"),
            (
                "Authorization: Bearer abx\r\n",
                "invalid websocket bearer token",
            ),
            (&of_digest, "invalid websocket bearer token"),
        ],
    );
    expect_one_connection(server, "Authorization: Bearer abc\r\n");
}

#[test]
fn signed_tokens_are_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("secret");
    let secret = "0123456789abcdef0123456789abcdef";
    std::fs::write(&file, secret).expect("a file");
    let file = file.to_str().expect("text");
    let server = TestServer::start(&[
        "--listen",
        "ws://127.0.0.1:0",
        "--ws-auth",
        "signed-bearer-token",
        "--ws-shared-secret-file",
        file,
        "--ws-issuer",
        "me",
        "--ws-audience",
        "raddle",
    ]);
    let good = Jwt::good();
    let header = |jwt: &Jwt| {
        format!(
            "Authorization: Bearer {}\r\n",
            jwt.signed(secret.as_bytes())
        )
    };
    let invalid = "invalid websocket jwt";
    type Change = fn(&mut Jwt);
    let with = |change: Change| {
        let mut jwt = Jwt::good();
        change(&mut jwt);
        jwt
    };
    let mut refused: Vec<(String, &str)> = vec![
        (String::new(), "missing websocket bearer token"),
        (
            "Authorization: Bearer \r\n".into(),
            "invalid authorization header",
        ),
        ("Authorization: Bearer x\r\n".into(), invalid),
        ("Authorization: Bearer a.b.c\r\n".into(), invalid),
        ("Authorization: Bearer ..\r\n".into(), invalid),
        (format!("Authorization: Bearer {secret}\r\n"), invalid),
        (
            format!(
                "Authorization: Bearer {}\r\n",
                good.signed(b"another secret, just as long as it")
            ),
            invalid,
        ),
        (
            format!("Authorization: Bearer {}\r\n", good.unsigned()),
            invalid,
        ),
        (header(&good).repeat(2), "invalid authorization header"),
    ];
    let cases: [(Change, &str); 12] = [
        (|it| it.header = r#"{"alg":"none"}"#.into(), invalid),
        (|it| it.header = r#"{"alg":"HS512"}"#.into(), invalid),
        (|it| it.header = r#"{"alg":"hs256"}"#.into(), invalid),
        (
            |it| it.header = r#"{"alg":"HS256","crit":["x"]}"#.into(),
            invalid,
        ),
        (|it| it.expires = None, invalid),
        (|it| it.expires = Some(it.now - 31), "expired websocket jwt"),
        (|it| it.expires = Some(0), "expired websocket jwt"),
        (
            |it| it.not_before = Some(it.now + 3600),
            "websocket jwt is not valid yet",
        ),
        (
            |it| it.issuer = Some("you"),
            "websocket jwt issuer mismatch",
        ),
        (|it| it.issuer = None, "websocket jwt issuer mismatch"),
        (
            |it| it.audience = Some("other"),
            "websocket jwt audience mismatch",
        ),
        (|it| it.audience = None, "websocket jwt audience mismatch"),
    ];
    refused.extend(cases.map(|(change, text)| (header(&with(change)), text)));
    let unsigned = with(|it| it.header = r#"{"alg":"none"}"#.into()).unsigned();
    refused.push((format!("Authorization: Bearer {unsigned}\r\n"), invalid));
    let refused: Vec<(&str, &str)> = refused.iter().map(|(a, b)| (a.as_str(), *b)).collect();
    refuses_tokens(&server, &refused);
    expect_one_connection(server, &header(&good));
}

#[test]
fn a_secret_is_its_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("secret");
    // Not text, and the surrounding whitespace is part of it.
    let secret = [&b" \xff\xfe\0"[..], &[0x80; 31], b"\n"].concat();
    std::fs::write(&file, &secret).expect("a file");
    let server = TestServer::start(&[
        "--listen",
        "ws://127.0.0.1:0",
        "--ws-auth",
        "signed-bearer-token",
        "--ws-shared-secret-file",
        file.to_str().expect("text"),
    ]);
    server.wait_for("token: needed, as `Authorization: Bearer JWT`: signed with HS256");
    let header =
        |secret: &[u8]| format!("Authorization: Bearer {}\r\n", Jwt::good().signed(secret));
    let trimmed = header(secret.trim_ascii());
    refuses_tokens(&server, &[(&trimmed, "invalid websocket jwt")]);
    expect_one_connection(server, &header(&secret));
}

/// Checks that each of these header lines is rejected with 401 and its text.
fn refuses_tokens(server: &TestServer, cases: &[(&str, &str)]) {
    let address = server.address();
    for (headers, text) in cases {
        let answer = check(address, &http::upgrade(&address.to_string(), headers), 401);
        assert_eq!(answer.body, *text, "{headers}");
    }
}
