use super::*;

/// A hatch at a path, and who came through it.
fn open(path: &Path) -> mpsc::Receiver<Connection> {
    let hatch = PeerListener::open(path).expect("a hatch");
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(hatch.serve("1.2.3", sender));
    receiver
}

fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("raddle-hatch-{}", std::process::id()));
    folder.join(name)
}

async fn heard(connection: &mut Connection) -> Option<String> {
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
        let mut came = open(&path);
        let mut here = dial(&path, "1.2.3", Some("me"))
            .await
            .expect("someone there");
        let mut there = came.recv().await.expect("someone came");
        assert_eq!(there.peer.principal.as_deref(), Some("me"));
        assert_eq!(there.peer.transport, Transport::Relay);
        let long = "x".repeat(1 << 20);
        for text in ["1", &long, "3"] {
            here.outgoing.send(Bytes::from(text.to_owned()));
            assert_eq!(heard(&mut there).await.as_deref(), Some(text));
            there.outgoing.send(Bytes::from(text.to_owned()));
            assert_eq!(heard(&mut here).await.as_deref(), Some(text));
        }
        there.outgoing.close(crate::Close::NORMAL);
        assert_eq!(heard(&mut here).await, None);
        std::fs::remove_dir_all(path.parent().expect("a folder")).expect("to tidy up");
    }
}

#[tokio::test]
async fn who_speaks_other_words_is_told_why_it_is_refused() {
    let path = scratch("words/a.sock");
    let _came = open(&path);
    let mut stream = UnixStream::connect(&path).await.expect("someone there");
    let hello = br#"{"relay":2,"version":"9.9.9","principal":null,"more":true}"#;
    stream.write_all(hello).await.expect("to greet");
    stream.write_all(b"\n").await.expect("to greet");
    let mut said = String::new();
    stream.read_to_string(&mut said).await.expect("an answer");
    let welcome: Welcome = serde_json::from_str(&said).expect("a welcome");
    let why = welcome.refused.expect("a refusal");
    assert!(
        why.contains("version 1.2.3") && why.contains("relay 1, not 2"),
        "{why}"
    );
}

#[tokio::test]
async fn nobody_is_there_before_and_afterwards() {
    let path = scratch("nobody/a.sock");
    let dialled = dial(&path, "1.2.3", None).await;
    assert!(matches!(dialled, Err(DialError::NotThere(_))));
    let came = open(&path);
    drop(dial(&path, "1.2.3", None).await.expect("someone there"));
    drop(came);
    // It takes a moment until the hatch sees that nobody takes what comes.
    while path.exists() {
        tokio::task::yield_now().await;
    }
    let dialled = dial(&path, "1.2.3", None).await;
    assert!(matches!(dialled, Err(DialError::NotThere(_))));
}

const SHORT: Duration = Duration::from_millis(500);

/// A connection to a process whose system takes little at a time, and that process's end of it.
fn narrow() -> (Connection, UnixStream) {
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

/// It never takes a whole piece within one deadline, but it does take something.
#[tokio::test]
async fn a_process_that_takes_little_at_a_time_is_waited_for() {
    let (here, mut there) = narrow();
    let long = Bytes::from(vec![b'x'; 80 << 10]);
    here.outgoing.send(long.clone());
    here.outgoing.close(crate::Close::NORMAL);
    let (begun, mut taken, mut sip) = (std::time::Instant::now(), Vec::new(), [0; 2 << 10]);
    loop {
        match there.read(&mut sip).await.expect("there is more") {
            0 => break,
            count => taken.extend_from_slice(&sip[..count]),
        }
        // This is what makes it slow.
        tokio::time::sleep(SHORT / 20).await;
    }
    assert_eq!(here.loss.why(), None);
    assert_eq!(taken.strip_suffix(b"\n"), Some(&*long));
    assert!(begun.elapsed() > SHORT, "it took longer than one deadline");
}

#[tokio::test]
async fn a_process_that_takes_nothing_is_let_go() {
    let (here, mut there) = narrow();
    here.outgoing.send(Bytes::from(vec![b'x'; 80 << 10]));
    let begun = std::time::Instant::now();
    here.outgoing.when_gone().await;
    assert!(begun.elapsed() >= SHORT, "it was given its time");
    let why = here.loss.why().expect("a loss");
    assert!(why.ends_with("it took nothing for 500ms"), "{why}");
    // And finds the end behind what its system has.
    let mut rest = Vec::new();
    there.read_to_end(&mut rest).await.expect("an end");
    assert!(rest.len() < 80 << 10);
}
