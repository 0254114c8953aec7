//! Access control. Every rejection comes before any handler: no websocket is opened, and the
//! server's log shows only the expected connections.

mod jwt;
mod start;
mod tokens;
mod unix;

use std::net::SocketAddr;

use crate::support::TEST_TIMEOUT;
use crate::support::http::{self, HttpResponse, UPGRADE};
use crate::support::server::TestServer;
use crate::support::websocket::Websocket;

/// Header lines with an origin, as web pages and imitations of our own would send them.
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

fn check(address: SocketAddr, request: &str, status: u16) -> HttpResponse {
    let answer = http::send(address, request);
    assert_eq!(answer.status, status, "{request}\n{answer:?}");
    answer
}

/// The only connection that the server has accepted is the one opened here.
fn expect_one_connection(server: TestServer, headers: &str) {
    let mut client = Websocket::connect_with(server.address(), headers);
    client.hello();
    client.disconnect();
    let ended = server.stop();
    assert_eq!(ended.connections(), 1, "{:?}", ended.log);
}

#[test]
fn any_origin_is_refused() {
    let server = TestServer::open_websocket(&[]);
    let address = server.address();
    for origin in ORIGINS {
        check(address, &http::upgrade(&address.to_string(), origin), 403);
        for path in ["/readyz", "/healthz", "/livez", "/metrics", "/", "/rpc"] {
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
    expect_one_connection(server, "");
}

#[test]
fn a_preflight_gets_no_cors_headers() {
    let server = TestServer::open_websocket(&[]);
    let address = server.address();
    let asks =
        "Access-Control-Request-Method: GET\r\nAccess-Control-Request-Private-Network: true\r\n";
    for (origin, status) in [("Origin: https://evil.test\r\n", 403), ("", 405)] {
        let request = format!("OPTIONS /readyz HTTP/1.1\r\nHost: {address}\r\n{origin}{asks}\r\n");
        let answer = check(address, &request, status);
        let has_cors = answer
            .headers
            .iter()
            .any(|(name, _)| name.starts_with("access-control-"));
        assert!(!has_cors, "{answer:?}");
    }
    expect_one_connection(server, "");
}

#[test]
fn foreign_hosts_are_refused() {
    let server = TestServer::open_websocket(&["--allow-host", "agents.example"]);
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
        // Many clients omit the port.
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
    expect_one_connection(server, "");
}

#[test]
fn this_is_no_proxy() {
    let server = TestServer::open_websocket(&[]);
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
    expect_one_connection(server, "");
}

#[test]
fn health_allows_get_only() {
    let server = TestServer::open_websocket(&[]);
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
    expect_one_connection(server, "");
}

#[test]
fn livez_and_metrics_allow_get_only() {
    let server = TestServer::open_websocket(&[]);
    let address = server.address();
    for (path, media, text) in [
        ("/livez", "application/json", "\"status\":\"ok\""),
        (
            "/metrics",
            "text/plain; version=0.0.4; charset=utf-8",
            "\nraddle_connections_total{transport=\"websocket\"} 0\n",
        ),
    ] {
        let request = |method: &str| format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        let answer = check(address, &request("GET"), 200);
        assert!(answer.body.contains(text), "{answer:?}");
        let media = ("content-type".to_owned(), media.to_owned());
        assert!(answer.headers.contains(&media), "{answer:?}");
        for method in ["POST", "HEAD", "OPTIONS"] {
            check(address, &request(method), 405);
        }
    }
}

#[test]
fn invalid_upgrades_are_rejected() {
    let server = TestServer::open_websocket(&[]);
    let address = server.address();
    let lines: Vec<&str> = UPGRADE.split_inclusive("\r\n").collect();
    let mut heads = vec![
        String::new(),
        UPGRADE.replace("13", "8"),
        UPGRADE.replace("websocket\r\n", "h2c\r\n"),
    ];
    // Each line of an upgrade is required.
    heads.extend((0..lines.len()).map(|left_out| {
        let remaining = lines.iter().enumerate().filter(|(at, _)| *at != left_out);
        remaining.map(|(_, line)| *line).collect()
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
    // An endless head.
    let bomb = format!(
        "GET / HTTP/1.1\r\nHost: {address}\r\n{}",
        "X: y\r\n".repeat(20_000)
    );
    let status = send_bomb(address, &bomb);
    assert!(matches!(status, None | Some(400 | 431)), "{status:?}");
    expect_one_connection(server, "");
}

/// The server may respond and close before it has read everything, which can lose the response.
fn send_bomb(address: SocketAddr, request: &str) -> Option<u16> {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).expect("the listener is open");
    stream
        .set_read_timeout(Some(TEST_TIMEOUT))
        .expect("an option");
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer).into_owned();
    text.split(' ')
        .nth(1)
        .map(|status| status.parse().expect("a status"))
}
