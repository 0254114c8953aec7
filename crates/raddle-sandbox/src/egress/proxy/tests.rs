use std::collections::HashMap;
use std::sync::Mutex;

use tokio::io::duplex;
use tokio::net::TcpListener;

use super::*;

/// Names with fixed addresses, and one server behind all of them.
struct FakeDialer {
    names: HashMap<&'static str, Vec<IpAddr>>,
    server: SocketAddr,
    dialled: Mutex<Vec<SocketAddr>>,
}

impl Dialer for FakeDialer {
    fn resolve<'a>(&'a self, name: &'a str) -> EgressFuture<'a, io::Result<Vec<IpAddr>>> {
        let addresses = self.names.get(name).cloned();
        Box::pin(async move { addresses.ok_or_else(|| io::ErrorKind::NotFound.into()) })
    }

    fn local_addresses(&self) -> io::Result<Vec<IpAddr>> {
        Ok(vec!["93.184.216.36".parse().expect("an address")])
    }

    fn dial(&self, address: SocketAddr) -> EgressFuture<'_, io::Result<TcpStream>> {
        self.dialled.lock().expect("dialled").push(address);
        Box::pin(TcpStream::connect(self.server))
    }
}

/// Trace of one request: what the client received, what was dialled, what the server received, and
/// the reported decisions.
struct RequestTrace {
    client: String,
    dialled: Vec<String>,
    server: String,
    decisions: Vec<String>,
}

async fn ask(request: &str) -> RequestTrace {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let address = |text: &str| -> IpAddr { text.parse().expect("an address") };
    let dialer = Arc::new(FakeDialer {
        names: HashMap::from([
            ("listed.test", vec![address("93.184.216.34")]),
            (
                "mixed.test",
                vec![address("10.0.0.1"), address("93.184.216.35")],
            ),
            ("inside.test", vec![address("127.0.0.1")]),
            ("cloud.test", vec![address("169.254.169.254")]),
            ("mapped.test", vec![address("::ffff:127.0.0.1")]),
            ("own.test", vec![address("93.184.216.36")]),
            ("own-mapped.test", vec![address("::ffff:93.184.216.36")]),
        ]),
        server: listener.local_addr().expect("an address"),
        dialled: Mutex::default(),
    });
    let rules = EgressRules::parse(
        [
            "listed.test",
            "mixed.test",
            "inside.test",
            "cloud.test",
            "mapped.test",
            "own.test",
            "own-mapped.test",
            "gone.test",
            "127.0.0.1:3000",
        ],
        ["denied.test"],
    );
    let decisions = Arc::new(Mutex::new(Vec::new()));
    let log = decisions.clone();
    let proxy = Proxy::new(rules.expect("rules"), dialer.clone(), move |it| {
        let word = if it.allowed { "yes" } else { "no" };
        let note = format!("{} {word}: {}", it.target, it.why);
        log.lock().expect("notes").push(note);
    });
    let (mut client, inside) = duplex(4096);
    let serving = tokio::spawn(async move { proxy.serve(inside).await });
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await?;
        let mut bytes = vec![0; 4096];
        let length = stream.read(&mut bytes).await?;
        stream.write_all(b"answer").await?;
        stream.shutdown().await?;
        bytes.truncate(length);
        io::Result::Ok(String::from_utf8_lossy(&bytes).into_owned())
    });
    client.write_all(request.as_bytes()).await.expect("written");
    let mut answer = String::new();
    let is_tunnel = request.starts_with("CONNECT");
    client.shutdown().await.expect("sent");
    client.read_to_string(&mut answer).await.expect("an answer");
    serving.await.expect("no panic").expect("served");
    let dialled = dialer.dialled.lock().expect("dialled").clone();
    let server = if dialled.is_empty() {
        server.abort();
        String::new()
    } else {
        server.await.expect("no panic").expect("a request")
    };
    if is_tunnel && !dialled.is_empty() {
        assert!(answer.ends_with("answer"), "{answer}");
    }
    let decisions = decisions.lock().expect("notes").clone();
    RequestTrace {
        client: answer.lines().next().unwrap_or_default().to_owned(),
        dialled: dialled.iter().map(SocketAddr::to_string).collect(),
        server,
        decisions,
    }
}

#[tokio::test]
async fn only_listed_hosts_are_reached() {
    for (target, status, dialled, decision) in [
        (
            "listed.test:443",
            "200",
            Some("93.184.216.34:443"),
            "yes: listed",
        ),
        (
            "mixed.test:443",
            "200",
            Some("93.184.216.35:443"),
            "yes: listed",
        ),
        (
            "127.0.0.1:3000",
            "200",
            Some("127.0.0.1:3000"),
            "yes: listed",
        ),
        ("127.0.0.1:22", "403", None, "no: port not listed"),
        ("inside.test:443", "403", None, "no: no public address"),
        ("cloud.test:80", "403", None, "no: no public address"),
        ("mapped.test:80", "403", None, "no: no public address"),
        ("own.test:443", "403", None, "no: no public address"),
        ("own-mapped.test:443", "403", None, "no: no public address"),
        ("other.test:443", "403", None, "no: not listed"),
        ("denied.test:443", "403", None, "no: denied"),
        ("gone.test:443", "502", None, "no: no such name"),
        ("169.254.169.254:80", "403", None, "no: not listed"),
    ] {
        let trace = ask(&format!("CONNECT {target} HTTP/1.1\r\n\r\nhello")).await;
        assert!(trace.client.contains(status), "{target}: {}", trace.client);
        assert_eq!(trace.dialled, Vec::from_iter(dialled), "{target}");
        assert_eq!(trace.decisions, [format!("{target} {decision}")]);
        assert_eq!(trace.server == "hello", dialled.is_some(), "{target}");
    }
}

#[tokio::test]
async fn a_plain_request_names_the_allowed_host_and_no_second_request_follows() {
    let trace = ask("POST http://listed.test/a HTTP/1.1\r\nHost: other.test\r\nContent-Length: 2\r\n\r\nhiGET / HTTP/1.1\r\nHost: other.test\r\n\r\n").await;
    assert_eq!(trace.client, "answer");
    assert_eq!(trace.dialled, ["93.184.216.34:80"]);
    // The body may come in a second piece.
    assert!(
        trace
            .server
            .starts_with("POST /a HTTP/1.1\r\nHost: listed.test\r\n"),
        "{}",
        trace.server
    );
    assert!(!trace.server.contains("other.test"), "{}", trace.server);
}

#[tokio::test]
async fn invalid_requests_are_refused_before_any_lookup() {
    for request in [
        "CONNECT listed.test\0.evil.test:443 HTTP/1.1\r\n\r\n",
        "CONNECT user@listed.test:443 HTTP/1.1\r\n\r\n",
        "CONNECT listed.test%00.evil.test:443 HTTP/1.1\r\n\r\n",
        "CONNECT 2130706433:80 HTTP/1.1\r\n\r\n",
        "CONNECT 0177.0.0.1:80 HTTP/1.1\r\n\r\n",
        "CONNECT listed.test.:443 HTTP/1.1\r\n\r\n",
        "GET http://listed.test@evil.test/ HTTP/1.1\r\n\r\n",
        "GET ftp://listed.test/ HTTP/1.1\r\n\r\n",
    ] {
        let trace = ask(request).await;
        assert!(
            trace.client.contains("400"),
            "{request:?}: {}",
            trace.client
        );
        assert_eq!((trace.dialled.len(), trace.decisions.len()), (0, 0));
    }
}
