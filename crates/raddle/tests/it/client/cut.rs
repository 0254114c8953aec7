//! Sockets that are closed in the middle of a message.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use raddle_client::ServerAddress;
use raddle_client::protocol::TurnStatus;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::{LONG, connect, follow_to_the_end, mock, next, serve, start, unix};
use crate::support::server::TestServer;

/// After how many bytes to the client each connection is closed. All are in the middle of a
/// message.
const CUTS: [u64; 6] = [4_001, 3_003, 10_007, 2_011, 30_013, 7_777];

/// The number of connections.
type Count = Arc<AtomicUsize>;

/// Copies bytes in both directions, until the limit of the connection. The end of one direction
/// ends both.
async fn carry<C, S>(client: C, server: S, count: Count)
where
    C: AsyncRead + AsyncWrite + Send,
    S: AsyncRead + AsyncWrite + Send,
{
    let cut = CUTS.get(count.fetch_add(1, Ordering::Relaxed));
    let (mut from_client, mut to_client) = tokio::io::split(client);
    let (from_server, mut to_server) = tokio::io::split(server);
    let mut from_server = from_server.take(cut.copied().unwrap_or(u64::MAX));
    let down = async {
        let copied: io::Result<u64> = copy(&mut from_server, &mut to_client).await;
        copied.map(drop)
    };
    let up = async {
        copy(&mut from_client, &mut to_server).await?;
        to_server.shutdown().await?;
        std::future::pending().await
    };
    // Both streams are dropped in any case.
    let _ = tokio::select! {
        ended = down => ended,
        ended = up => ended,
    };
}

fn over_tcp(listener: TcpListener, server: &TestServer, count: Count) -> ServerAddress {
    let far = server.address();
    let port = listener.local_addr().expect("an address").port();
    let url = format!("ws://localhost:{port}");
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(far).await.expect("the server");
            tokio::spawn(carry(client, server, count.clone()));
        }
    });
    ServerAddress::WebSocket { url, token: None }
}

fn over_unix(far: PathBuf, folder: &std::path::Path, count: Count) -> ServerAddress {
    let near = folder.join("near");
    let listener = UnixListener::bind(&near).expect("a socket");
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = UnixStream::connect(&far).await.expect("the server");
            tokio::spawn(carry(client, server, count.clone()));
        }
    });
    unix(&near)
}

/// Runs a long turn over connections that are closed again and again.
async fn is_exact(address: ServerAddress, count: Count) {
    let client = connect(address).await;
    let mut follow = start(&client).await;
    follow.say(LONG).await.expect("a turn");
    let ended = follow_to_the_end(&client, &mut follow).await;
    assert_eq!(ended, TurnStatus::Completed);
    let length = follow.thread().last_message().map_or(0, str::len);
    assert_eq!(length, 400 * 8);
    assert!(count.load(Ordering::Relaxed) > 3, "it was cut");
    client.close().await;
}

#[tokio::test]
async fn a_websocket_cut_in_the_middle_of_a_message_loses_nothing() {
    let mock = mock();
    // A server accepts its own port as host only, so the proxy has the same port on another
    // address.
    let mut arguments = mock.arguments(&[]);
    arguments.extend(["--listen", "ws://127.0.0.2:0", "--insecure-loopback"].map(str::to_owned));
    let (server, listener) = loop {
        let server = TestServer::start(&super::borrowed(&arguments));
        match TcpListener::bind(("127.0.0.1", server.address().port())).await {
            Ok(listener) => break (server, listener),
            Err(_) => drop(server.stop()),
        }
    };
    let count = Count::default();
    let address = over_tcp(listener, &server, count.clone());
    is_exact(address, count).await;
    server.stop();
}

#[tokio::test]
async fn a_unix_socket_cut_in_the_middle_of_a_message_loses_nothing() {
    let mock = mock();
    let (server, _) = serve(&mock);
    let folder = tempfile::tempdir().expect("a folder");
    let count = Count::default();
    let address = over_unix(server.socket(), folder.path(), count.clone());
    is_exact(address, count).await;
    server.stop();
}

#[tokio::test]
async fn a_turn_goes_on_with_the_next_server() {
    let mock = mock();
    let (mut server, arguments) = serve(&mock);
    let client = connect(unix(&server.socket())).await;
    let mut follow = start(&client).await;
    follow.say(LONG).await.expect("a turn");
    super::follow_until(&mut follow, 100).await;
    server.start_again(&super::borrowed(&arguments));
    while !matches!(
        next(&mut follow).await,
        raddle_client::ThreadEvent::Reconnected
    ) {}
    let ended = follow_to_the_end(&client, &mut follow).await;
    assert_eq!(ended, TurnStatus::Completed);
    client.close().await;
    server.stop();
}

#[tokio::test]
async fn a_listener_with_a_token_rejects_clients_without_it() {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    let token = "a-token-that-is-long-enough-to-be-taken";
    io::Write::write_all(&mut file, token.as_bytes()).expect("written");
    let path = file.path().display().to_string();
    let server = TestServer::start(&[
        "--listen",
        "ws://127.0.0.1:0",
        "--ws-auth",
        "capability-token",
        "--ws-token-file",
        &path,
    ]);
    let url = format!("ws://{}", server.address());
    let address = |token: Option<&str>| ServerAddress::WebSocket {
        url: url.clone(),
        token: token.map(str::to_owned),
    };
    let options = raddle_client::Options::new("it", "1");
    let refused =
        raddle_client::Client::connect(address(None), options, raddle_client::RejectAll).await;
    let refused = refused.expect_err("no token").to_string();
    assert!(refused.contains("401"), "{refused}");
    connect(address(Some(token))).await.close().await;
    server.stop();
}
