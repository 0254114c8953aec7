//! Who is let in. Every refusal comes before any handler: no websocket is opened, and the server's
//! log shows no connection but the ones that were meant.

mod jwt;
mod start;
mod unix;

use std::net::SocketAddr;

use self::jwt::Jwt;
use crate::support::PATIENCE;
use crate::support::http::{self, Answer, UPGRADE};
use crate::support::server::Server;
use crate::support::websocket::Websocket;

/// Header lines that name an origin, as web pages and imitations of our own would.
const ORIGINS: &[&str] = &[
    "Origin: null\r\n",
    "Origin: \r\n",
    "Origin:\r\n",
    "Origin: http://localhost\r\n",
    "Origin: http://127.0.0.1\r\n",
    "Origin: http://localhost.evil.test\r\n",
    "Origin: http://127.0.0.1.evil.test\r\n",
    "Origin: http://127.0.0.1:1@evil.test\r\n",
    "Origin: https://evil.test\r\n",
    "Origin: file://\r\n",
    "ORIGIN: HTTP://LOCALHOST\r\n",
    "origin: http://localhost\r\n",
    "Origin: http://localhost\r\nOrigin: https://evil.test\r\n",
    "Origin: null\r\nOrigin: null\r\n",
];

fn check(address: SocketAddr, request: &str, status: u16) -> Answer {
    let answer = http::send(address, request);
    assert_eq!(answer.status, status, "{request}\n{answer:?}");
    answer
}

/// The only connection the server has seen is the one that this opens.
fn only_good_ones_came_in(server: Server, headers: &str) {
    let mut client = Websocket::connect_with(server.address(), headers);
    client.hello();
    client.leave();
    let ended = server.stop();
    assert_eq!(ended.connections(), 1, "{:?}", ended.log);
}

#[test]
fn any_origin_is_refused() {
    let server = Server::open_websocket(&[]);
    let address = server.address();
    for origin in ORIGINS {
        check(address, &http::upgrade(&address.to_string(), origin), 403);
        for path in ["/readyz", "/healthz", "/", "/rpc"] {
            for method in ["GET", "POST", "OPTIONS", "HEAD"] {
                let request =
                    format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n{origin}\r\n");
                let answer = check(address, &request, 403);
                let allows = |name: &str| name.starts_with("access-control-");
                assert!(
                    !answer.headers.iter().any(|(name, _)| allows(name)),
                    "{request}\n{answer:?}"
                );
            }
        }
    }
    only_good_ones_came_in(server, "");
}

#[test]
fn a_preflight_is_told_nothing() {
    let server = Server::open_websocket(&[]);
    let address = server.address();
    let asks =
        "Access-Control-Request-Method: GET\r\nAccess-Control-Request-Private-Network: true\r\n";
    for (origin, status) in [("Origin: https://evil.test\r\n", 403), ("", 405)] {
        let request = format!("OPTIONS /readyz HTTP/1.1\r\nHost: {address}\r\n{origin}{asks}\r\n");
        let answer = check(address, &request, status);
        let told = answer
            .headers
            .iter()
            .any(|(name, _)| name.starts_with("access-control-"));
        assert!(!told, "{answer:?}");
    }
    only_good_ones_came_in(server, "");
}

#[test]
fn foreign_hosts_are_refused() {
    let server = Server::open_websocket(&["--allow-host", "agents.example"]);
    let address = server.address();
    let port = address.port();
    let other = port ^ 1;
    let hosts = [
        String::new(),
        "Host:\r\n".into(),
        "Host: \r\n".into(),
        "Host: evil.test\r\n".into(),
        format!("Host: evil.test:{port}\r\n"),
        format!("Host: localhost.:{port}\r\n"),
        format!("Host: 127.0.0.1.:{port}\r\n"),
        format!("Host: localhost.evil.test:{port}\r\n"),
        format!("Host: agents.example.:{port}\r\n"),
        format!("Host: agents.example.evil.test:{port}\r\n"),
        format!("Host: 127.0.0.1:{port}@evil.test\r\n"),
        format!("Host: 127.0.0.1:{other}\r\n"),
        format!("Host: 127.0.0.1:0{port}\r\n"),
        format!("Host: 127.0.0.2:{port}\r\n"),
        format!("Host: 0.0.0.0:{port}\r\n"),
        format!("Host: [::1]:{port}\r\n"),
        format!("Host: 0x7f000001:{port}\r\n"),
        format!("Host: 2130706433:{port}\r\n"),
        "Host: agents.example.\r\n".into(),
        "Host: localhost.\r\n".into(),
        "Host: 127.0.0.2\r\n".into(),
        format!("Host: {address}\r\nHost: {address}\r\n"),
        format!("Host: {address}\r\nHost: evil.test\r\n"),
        format!("Host: {address}, evil.test\r\n"),
    ];
    for host in &hosts {
        check(
            address,
            &format!("GET / HTTP/1.1\r\n{host}{UPGRADE}\r\n"),
            403,
        );
        check(address, &format!("GET /readyz HTTP/1.1\r\n{host}\r\n"), 403);
        check(
            address,
            &format!("POST /readyz HTTP/1.1\r\n{host}\r\n"),
            403,
        );
    }
    for host in [
        format!("{address}"),
        // Many clients leave out the port.
        "127.0.0.1".into(),
        "localhost".into(),
        format!("LOCALHOST:{port}"),
        format!("agents.example:{port}"),
    ] {
        check(
            address,
            &format!("GET /readyz HTTP/1.1\r\nHost: {host}\r\n\r\n"),
            200,
        );
    }
    only_good_ones_came_in(server, "");
}

#[test]
fn this_is_no_proxy() {
    let server = Server::open_websocket(&[]);
    let address = server.address();
    for target in [
        format!("http://{address}/"),
        "http://evil.test/".into(),
        format!("http://{address}/readyz"),
    ] {
        check(
            address,
            &format!("GET {target} HTTP/1.1\r\nHost: {address}\r\n{UPGRADE}\r\n"),
            421,
        );
        check(
            address,
            &format!("GET {target} HTTP/1.1\r\nHost: evil.test\r\n\r\n"),
            421,
        );
    }
    check(
        address,
        &format!("CONNECT evil.test:443 HTTP/1.1\r\nHost: {address}\r\n\r\n"),
        421,
    );
    only_good_ones_came_in(server, "");
}

#[test]
fn health_is_told_to_get_only() {
    let server = Server::open_websocket(&[]);
    let address = server.address();
    for path in ["/readyz", "/healthz"] {
        let request = |method: &str| format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        let answer = check(address, &request("GET"), 200);
        assert_eq!(answer.body, "");
        for method in [
            "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "BREW",
        ] {
            let answer = check(address, &request(method), 405);
            assert!(
                answer.headers.contains(&("allow".into(), "GET".into())),
                "{answer:?}"
            );
        }
    }
    only_good_ones_came_in(server, "");
}

#[test]
fn what_is_no_upgrade_is_refused() {
    let server = Server::open_websocket(&[]);
    let address = server.address();
    let lines: Vec<&str> = UPGRADE.split_inclusive("\r\n").collect();
    let mut heads = vec![
        String::new(),
        UPGRADE.replace("13", "8"),
        UPGRADE.replace("websocket\r\n", "h2c\r\n"),
    ];
    // Each line of an upgrade is needed.
    heads.extend((0..lines.len()).map(|left_out| {
        let kept = lines.iter().enumerate().filter(|(at, _)| *at != left_out);
        kept.map(|(_, line)| *line).collect()
    }));
    for head in &heads {
        check(
            address,
            &format!("GET / HTTP/1.1\r\nHost: {address}\r\n{head}\r\n"),
            400,
        );
        check(
            address,
            &format!("GET /rpc HTTP/1.1\r\nHost: {address}\r\n{head}\r\n"),
            400,
        );
    }
    check(
        address,
        &format!("POST / HTTP/1.1\r\nHost: {address}\r\n{UPGRADE}\r\n"),
        400,
    );
    check(
        address,
        &format!("GET / HTTP/1.0\r\nHost: {address}\r\n{UPGRADE}\r\n"),
        400,
    );
    // Not HTTP at all.
    check(address, "hello\r\n\r\n", 400);
    // A head that does not end.
    let bomb = format!(
        "GET / HTTP/1.1\r\nHost: {address}\r\n{}",
        "X: y\r\n".repeat(20_000)
    );
    let status = send_bomb(address, &bomb);
    assert!(matches!(status, None | Some(400 | 431)), "{status:?}");
    only_good_ones_came_in(server, "");
}

/// The server may answer and close before it has read everything, which can take the answer away.
fn send_bomb(address: SocketAddr, request: &str) -> Option<u16> {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).expect("the door is open");
    stream.set_read_timeout(Some(PATIENCE)).expect("an option");
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer).into_owned();
    text.split(' ')
        .nth(1)
        .map(|status| status.parse().expect("a status"))
}

#[test]
fn the_capability_token_is_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    std::fs::write(&file, "correct horse\n").expect("a file");
    let file = file.to_str().expect("text");
    let server = Server::start(&[
        "--listen",
        "ws://127.0.0.1:0",
        "--ws-auth",
        "capability-token",
        "--ws-token-file",
        file,
    ]);
    let good = "Authorization: Bearer correct horse\r\n";
    let malformed = "invalid authorization header";
    let wrong = "invalid websocket bearer token";
    refuses_tokens(
        &server,
        &[
            ("", "missing websocket bearer token"),
            ("Authorization: \r\n", malformed),
            ("Authorization: Bearer\r\n", malformed),
            ("Authorization: Bearer \r\n", malformed),
            ("Authorization: Basic correct horse\r\n", malformed),
            ("Authorization: correct horse\r\n", malformed),
            ("Authorization: Bearer wrong\r\n", wrong),
            ("Authorization: Bearer correct horsf\r\n", wrong),
            ("Authorization: Bearer correct horse battery\r\n", wrong),
            ("Authorization: Bearer CORRECT HORSE\r\n", wrong),
            ("Authorization: Bearer null\r\n", wrong),
            (&good.repeat(2), malformed),
            (&format!("{good}Authorization: Bearer wrong\r\n"), malformed),
            (&format!("Authorization: Bearer wrong\r\n{good}"), malformed),
        ],
    );
    // Health needs no token.
    let address = server.address();
    check(
        address,
        &format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\n\r\n"),
        200,
    );
    // A good token does not make up for an origin, or for a foreign host.
    for origin in ORIGINS {
        let headers = format!("{origin}{good}");
        check(address, &http::upgrade(&address.to_string(), &headers), 403);
    }
    check(address, &http::upgrade("evil.test", good), 403);
    only_good_ones_came_in(server, "authorization: bEARER correct horse\r\n");
}

#[test]
fn the_digest_of_a_token_will_do() {
    // The SHA-256 of `abc`, from the standard's own example.
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let server = Server::start(&[
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
    only_good_ones_came_in(server, "Authorization: Bearer abc\r\n");
}

#[test]
fn signed_tokens_are_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("secret");
    let secret = "0123456789abcdef0123456789abcdef";
    std::fs::write(&file, secret).expect("a file");
    let file = file.to_str().expect("text");
    let server = Server::start(&[
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
    only_good_ones_came_in(server, &header(&good));
}

/// Each of these header lines is refused with 401 and its text.
fn refuses_tokens(server: &Server, cases: &[(&str, &str)]) {
    let address = server.address();
    for (headers, text) in cases {
        let answer = check(address, &http::upgrade(&address.to_string(), headers), 401);
        assert_eq!(answer.body, *text, "{headers}");
    }
}
