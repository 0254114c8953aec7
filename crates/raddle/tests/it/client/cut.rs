//! Sockets that are cut in the middle of a message.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use raddle_client::ServerAddress;
use raddle_client::protocol::TurnStatus;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::{LONG, connect, hear_out, mock, next, serve, start, unix};
use crate::support::server::TestServer;

/// After how many bytes to the client each connection is cut. All are in the middle of something.
const CUTS: [u64; 6] = [4_001, 3_003, 10_007, 2_011, 30_013, 7_777];

/// How many connections were made.
type Count = Arc<AtomicUsize>;

/// Carries bytes until the connection's time has come. The first half of a connection that ends, ends both.
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
    // However it ends, both are dropped.
    let _ = tokio::select! {
        ended = down => ended,
        ended = up => ended,
    };
}

fn over_tcp(door: TcpListener, server: &TestServer, count: Count) -> ServerAddress {
    let far = server.address();
    let port = door.local_addr().expect("an address").port();
    let url = format!("ws://localhost:{port}");
    tokio::spawn(async move {
        while let Ok((client, _)) = door.accept().await {
            let server = TcpStream::connect(far).await.expect("the server");
            tokio::spawn(carry(client, server, count.clone()));
        }
    });
    ServerAddress::WebSocket { url, token: None }
}

fn over_unix(far: PathBuf, folder: &std::path::Path, count: Count) -> ServerAddress {
    let near = folder.join("near");
    let door = UnixListener::bind(&near).expect("a socket");
    tokio::spawn(async move {
        while let Ok((client, _)) = door.accept().await {
            let server = UnixStream::connect(&far).await.expect("the server");
            tokio::spawn(carry(client, server, count.clone()));
        }
    });
    unix(&near)
}

/// A long turn over connections that are cut again and again.
async fn is_exact(place: ServerAddress, count: Count) {
    let client = connect(place).await;
    let mut follow = start(&client).await;
    follow.say(LONG).await.expect("a turn");
    let ended = hear_out(&client, &mut follow).await;
    assert_eq!(ended, TurnStatus::Completed);
    let said = follow.thread().last_message().map_or(0, str::len);
    assert_eq!(said, 400 * 8);
    assert!(count.load(Ordering::Relaxed) > 3, "it was cut");
    client.close().await;
}

#[tokio::test]
async fn a_websocket_that_is_cut_in_the_middle_of_a_message_costs_nothing() {
    let mock = mock();
    // A server is asked under its own port only, so whoever is in the middle has the same on another address.
    let mut arguments = mock.arguments(&[]);
    arguments.extend(["--listen", "ws://127.0.0.2:0", "--insecure-loopback"].map(str::to_owned));
    let (server, door) = loop {
        let server = TestServer::start(&super::borrowed(&arguments));
        match TcpListener::bind(("127.0.0.1", server.address().port())).await {
            Ok(door) => break (server, door),
            Err(_) => drop(server.stop()),
        }
    };
    let count = Count::default();
    let place = over_tcp(door, &server, count.clone());
    is_exact(place, count).await;
    server.stop();
}

#[tokio::test]
async fn so_does_a_unix_socket() {
    let mock = mock();
    let (server, _) = serve(&mock);
    let folder = tempfile::tempdir().expect("a folder");
    let count = Count::default();
    let place = over_unix(server.socket(), folder.path(), count.clone());
    is_exact(place, count).await;
    server.stop();
}

#[tokio::test]
async fn a_turn_goes_on_with_the_next_server() {
    let mock = mock();
    let (mut server, arguments) = serve(&mock);
    let client = connect(unix(&server.socket())).await;
    let mut follow = start(&client).await;
    follow.say(LONG).await.expect("a turn");
    super::until_said(&mut follow, 100).await;
    server.start_again(&super::borrowed(&arguments));
    while !matches!(
        next(&mut follow).await,
        raddle_client::ThreadEvent::Reconnected
    ) {}
    let ended = hear_out(&client, &mut follow).await;
    assert_eq!(ended, TurnStatus::Completed);
    client.close().await;
    server.stop();
}

#[tokio::test]
async fn a_door_that_needs_a_token_says_so() {
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
    let place = |token: Option<&str>| ServerAddress::WebSocket {
        url: url.clone(),
        token: token.map(str::to_owned),
    };
    let options = raddle_client::Options::new("it", "1");
    let refused =
        raddle_client::Client::connect(place(None), options, raddle_client::RejectAll).await;
    let refused = refused.expect_err("no token").to_string();
    assert!(refused.contains("401"), "{refused}");
    connect(place(Some(token))).await.close().await;
    server.stop();
}
