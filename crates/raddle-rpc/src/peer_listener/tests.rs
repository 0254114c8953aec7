use super::*;

/// Opens a listener at a path, and returns its connections.
fn open(path: &Path) -> mpsc::Receiver<Connection> {
    let listener = PeerListener::open(path).expect("a hatch");
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(listener.serve("1.2.3", sender));
    receiver
}

fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("raddle-hatch-{}", std::process::id()));
    folder.join(name)
}

async fn receive(connection: &mut Connection) -> Option<String> {
    match connection.incoming.next().await? {
        Frame::Message(frame) => Some(String::from_utf8_lossy(&frame).into_owned()),
        other => Some(format!("{other:?}")),
    }
}

#[tokio::test]
async fn messages_go_both_ways_also_where_the_path_is_long() {
    for name in [
        "short/a.sock".to_owned(),
        format!("{}/a.sock", "long".repeat(40)),
    ] {
        let path = scratch(&name);
        let mut connections = open(&path);
        let mut client = dial(&path, "1.2.3", Some("me"))
            .await
            .expect("someone there");
        let mut server = connections.recv().await.expect("someone came");
        assert_eq!(server.peer.principal.as_deref(), Some("me"));
        assert_eq!(server.peer.transport, Transport::Relay);
        let long = "x".repeat(1 << 20);
        for text in ["1", &long, "3"] {
            client.outgoing.send(Bytes::from(text.to_owned()));
            assert_eq!(receive(&mut server).await.as_deref(), Some(text));
            server.outgoing.send(Bytes::from(text.to_owned()));
            assert_eq!(receive(&mut client).await.as_deref(), Some(text));
        }
        server.outgoing.close(crate::Close::NORMAL);
        assert_eq!(receive(&mut client).await, None);
        std::fs::remove_dir_all(path.parent().expect("a folder")).expect("to tidy up");
    }
}

#[tokio::test]
async fn a_relay_version_mismatch_is_rejected_with_a_reason() {
    let path = scratch("words/a.sock");
    let _connections = open(&path);
    let mut stream = UnixStream::connect(&path).await.expect("someone there");
    let hello = br#"{"relay":2,"version":"9.9.9","principal":null,"more":true}"#;
    stream.write_all(hello).await.expect("to greet");
    stream.write_all(b"\n").await.expect("to greet");
    let mut response = String::new();
    stream
        .read_to_string(&mut response)
        .await
        .expect("an answer");
    let welcome: Welcome = serde_json::from_str(&response).expect("a welcome");
    let why = welcome.refused.expect("a refusal");
    assert!(
        why.contains("version 1.2.3") && why.contains("relay 1, not 2"),
        "{why}"
    );
}

#[tokio::test]
async fn dialing_fails_before_and_after_the_listener_exists() {
    let path = scratch("nobody/a.sock");
    let dial_result = dial(&path, "1.2.3", None).await;
    assert!(matches!(dial_result, Err(DialError::Unreachable(_))));
    let connections = open(&path);
    drop(dial(&path, "1.2.3", None).await.expect("someone there"));
    drop(connections);
    // The listener notices the closed receiver only after a moment.
    while path.exists() {
        tokio::task::yield_now().await;
    }
    let dial_result = dial(&path, "1.2.3", None).await;
    assert!(matches!(dial_result, Err(DialError::Unreachable(_))));
}

const SHORT: Duration = Duration::from_millis(500);

/// A connection with a small send buffer, and the other process's end of it.
fn connection_with_small_buffer() -> (Connection, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let buffer = socket2::SockRef::from(&ours).set_send_buffer_size(8 << 10);
    buffer.expect("an option");
    let limits = ConnectionLimits {
        write: SHORT,
        ..ConnectionLimits::default()
    };
    let lines = LineCodec::new(MESSAGE_BYTES_MAX);
    (connection(ours, lines, None, limits), theirs)
}

/// The reader never drains a whole piece within one deadline, but it makes progress.
#[tokio::test]
async fn a_slow_process_does_not_time_out() {
    let (connection, mut peer) = connection_with_small_buffer();
    let long = Bytes::from(vec![b'x'; 80 << 10]);
    connection.outgoing.send(long.clone());
    connection.outgoing.close(crate::Close::NORMAL);
    let (started, mut received, mut chunk) = (std::time::Instant::now(), Vec::new(), [0; 2 << 10]);
    loop {
        match peer.read(&mut chunk).await.expect("there is more") {
            0 => break,
            count => received.extend_from_slice(&chunk[..count]),
        }
        // Makes the reader slow.
        tokio::time::sleep(SHORT / 20).await;
    }
    assert_eq!(connection.loss.why(), None);
    assert_eq!(received.strip_suffix(b"\n"), Some(&*long));
    assert!(
        started.elapsed() > SHORT,
        "it took longer than one deadline"
    );
}

#[tokio::test]
async fn a_process_that_reads_nothing_times_out() {
    let (connection, mut peer) = connection_with_small_buffer();
    connection.outgoing.send(Bytes::from(vec![b'x'; 80 << 10]));
    let started = std::time::Instant::now();
    connection.outgoing.when_gone().await;
    assert!(started.elapsed() >= SHORT, "it was given its time");
    let why = connection.loss.why().expect("a loss");
    assert!(why.ends_with("it read nothing for 500ms"), "{why}");
    // The reader finds the end behind what the kernel has buffered.
    let mut rest = Vec::new();
    peer.read_to_end(&mut rest).await.expect("an end");
    assert!(rest.len() < 80 << 10);
}
