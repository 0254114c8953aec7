//! Both ends of pipes with a misbehaving peer.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::time::Duration;

use bytes::Bytes;
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::time::timeout;

use super::*;
use crate::Close;

const SHORT: Duration = Duration::from_millis(300);

/// Far longer than any step takes.
const TIMEOUT: Duration = Duration::from_secs(30);

struct PipeEnds {
    connection: Connection,
    stdin: std::fs::File,
    stdout: OwnedFd,
}

fn open(flags: PipeFlags) -> PipeEnds {
    let (input, stdin) = pipe_with(flags).expect("a pipe");
    let (stdout, output) = pipe_with(flags).expect("a pipe");
    let limits = ConnectionLimits {
        write: SHORT,
        ..ConnectionLimits::default()
    };
    PipeEnds {
        connection: pipes(input, output, limits).expect("threads"),
        stdin: stdin.into(),
        stdout,
    }
}

/// Reads a little at a time to the end, and returns the number of bytes.
fn read_slowly(stdout: &OwnedFd, at_once: usize, pause: Duration) -> usize {
    let mut all = 0;
    let mut chunk = vec![0; at_once];
    loop {
        match rustix::io::read(stdout, &mut chunk) {
            Ok(0) => return all,
            Ok(count) => all += count,
            Err(Errno::AGAIN) => continue,
            Err(error) => panic!("{error}"),
        }
        // Makes the reader slow.
        thread::sleep(pause);
    }
}

/// More than a pipe holds.
fn long_frame() -> Bytes {
    Bytes::from(vec![b'x'; 200 << 10])
}

async fn is_gone(outgoing: &Outgoing) {
    let gone = timeout(TIMEOUT, outgoing.when_gone()).await;
    gone.expect("the writer ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_gets_everything_even_after_the_end() {
    for flags in [PipeFlags::CLOEXEC, PipeFlags::CLOEXEC | PipeFlags::NONBLOCK] {
        let ends = open(flags);
        let Connection { outgoing, loss, .. } = ends.connection;
        outgoing.send(long_frame());
        outgoing.send(Bytes::from_static(b"{}"));
        outgoing.close(Close::NORMAL);
        let started = std::time::Instant::now();
        let stdout = ends.stdout;
        let reader = tokio::task::spawn_blocking(move || read_slowly(&stdout, 4 << 10, SHORT / 20));
        is_gone(&outgoing).await;
        let read = reader.await.expect("no panic");
        assert_eq!(read, (200 << 10) + 1 + 3);
        assert!(
            started.elapsed() > SHORT,
            "it took longer than one deadline"
        );
        assert_eq!(loss.why(), None);
    }
}

/// The reader never frees a page of the pipe within one deadline, but it does read.
#[tokio::test(flavor = "multi_thread")]
async fn a_very_slow_reader_does_not_time_out() {
    let ends = open(PipeFlags::CLOEXEC);
    let Connection { outgoing, loss, .. } = ends.connection;
    outgoing.send(Bytes::from(vec![b'x'; 66 << 10]));
    let mut byte = [0; 512];
    let started = std::time::Instant::now();
    while started.elapsed() < 3 * SHORT {
        rustix::io::read(&ends.stdout, &mut byte).expect("there is more");
        tokio::time::sleep(SHORT / 4).await;
    }
    assert_eq!(loss.why(), None);
    assert!(!outgoing.is_closed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_reads_nothing_times_out() {
    for flags in [PipeFlags::CLOEXEC, PipeFlags::CLOEXEC | PipeFlags::NONBLOCK] {
        let ends = open(flags);
        let Connection { outgoing, loss, .. } = ends.connection;
        outgoing.send(long_frame());
        let started = std::time::Instant::now();
        is_gone(&outgoing).await;
        assert!(started.elapsed() >= SHORT, "it was given its time");
        let why = loss.why().expect("a loss");
        assert!(why.contains("stdout was not read"), "{why}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_reader_is_detected() {
    let ends = open(PipeFlags::CLOEXEC);
    let Connection { outgoing, loss, .. } = ends.connection;
    drop(ends.stdout);
    outgoing.send(Bytes::from_static(b"{}"));
    is_gone(&outgoing).await;
    assert!(loss.why().expect("a loss").contains("responses are lost"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_non_blocking_input_is_polled() {
    let ends = open(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK);
    let mut incoming = ends.connection.incoming;
    let mut stdin = ends.stdin;
    for word in [&b"one"[..], b"two"] {
        // No data yet, and no end.
        assert!(timeout(SHORT / 3, incoming.next()).await.is_err());
        stdin.write_all(word).expect("it fits");
        stdin.write_all(b"\n").expect("it fits");
        let frame = timeout(TIMEOUT, incoming.next()).await.expect("in time");
        assert_eq!(frame, Some(Frame::Message(Bytes::from_static(word))));
    }
    drop(stdin);
    let end = timeout(TIMEOUT, incoming.next()).await.expect("in time");
    assert_eq!(end, None);
    assert_eq!(ends.connection.loss.why(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_fails_is_a_loss() {
    // A folder can be opened but not read.
    let input = std::fs::File::open("/").expect("a folder");
    let (_stdout, output) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
    let mut connection = pipes(input, output, ConnectionLimits::default()).expect("threads");
    let end = timeout(TIMEOUT, connection.incoming.next()).await;
    assert_eq!(end.expect("in time"), None);
    let why = connection.loss.why().expect("a loss");
    assert!(why.starts_with("stdin failed"), "{why}");
}
