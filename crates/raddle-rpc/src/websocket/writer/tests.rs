//! Peers that read little, nothing, or have nothing to read. Time is paused, so the tests do not
//! wait.

use std::io::Read;

use tokio::net::UnixStream;
use tokio::time::sleep;

use super::*;
use crate::socket_stream::RawSocket;

const DEADLINE: Duration = Duration::from_secs(120);

/// More than the kernel buffers for a peer that reads nothing.
const MUCH_BYTES: usize = 1 << 20;

/// A peer, its outgoing queue, and its data loss.
fn open() -> (std::os::unix::net::UnixStream, Outgoing, DataLoss) {
    let (own_end, peer) = UnixStream::pair().expect("a pair of sockets");
    let (outgoing, loss) = (Outgoing::new(MUCH_BYTES), DataLoss::default());
    let socket = SocketStream::new(RawSocket::Unix(own_end));
    let writer = WebsocketWriter::new(socket, Pongs::default(), DEADLINE);
    tokio::spawn(writer.run(outgoing.clone(), loss.clone()));
    let peer = peer.into_std().expect("a socket");
    (peer, outgoing, loss)
}

/// Reads at most this many bytes. Returns `None` at the end.
fn read(peer: &mut std::os::unix::net::UnixStream, bytes: usize) -> Option<Vec<u8>> {
    let mut read = vec![0; bytes];
    match peer.read(&mut read) {
        Ok(0) => None,
        Ok(count) => {
            read.truncate(count);
            Some(read)
        }
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Some(Vec::new()),
        Err(error) => panic!("{error}"),
    }
}

fn frames() -> Vec<Bytes> {
    let frame = |number: usize| Bytes::from(vec![b'a' + (number % 26) as u8; 10_000]);
    (0..MUCH_BYTES / 10_000).map(frame).collect()
}

/// Decodes the payloads of text frames, and of the close behind them.
fn decode_frames(mut bytes: &[u8]) -> (Vec<Bytes>, Option<Vec<u8>>) {
    let mut texts = Vec::new();
    loop {
        match bytes {
            [0x81, 126, high, low, rest @ ..] => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                let (payload, rest) = rest.split_at(length);
                texts.push(Bytes::copy_from_slice(payload));
                bytes = rest;
            }
            [0x88, length, payload @ ..] => {
                assert_eq!(usize::from(*length), payload.len(), "nothing is behind it");
                return (texts, Some(payload.to_vec()));
            }
            rest => {
                assert!(rest.is_empty(), "{rest:?} is no frame of ours");
                return (texts, None);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_receives_everything() {
    let (mut peer, outgoing, loss) = open();
    let sent = frames();
    sent.iter().for_each(|frame| outgoing.send(frame.clone()));
    outgoing.close(Close::NORMAL);
    let mut received = Vec::new();
    // The kernel reports the socket as writable only when most of its buffer was read.
    while let Some(read) = read(&mut peer, 16 << 10) {
        received.extend(read);
        sleep(DEADLINE / 2).await;
    }
    let (texts, close) = decode_frames(&received);
    assert_eq!(texts, sent);
    assert_eq!(close.expect("a close")[..2], 1000_u16.to_be_bytes());
    assert_eq!(loss.why(), None);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_reads_nothing_is_closed_with_a_reason() {
    let (mut peer, outgoing, loss) = open();
    let sent = frames();
    sent.iter().for_each(|frame| outgoing.send(frame.clone()));
    let started = Instant::now();
    outgoing.when_gone().await;
    let elapsed = started.elapsed();
    assert!((DEADLINE..2 * DEADLINE).contains(&elapsed), "{elapsed:?}");
    assert_eq!(outgoing.queued_bytes(), 0, "nothing is kept for it");
    assert!(loss.why().is_some());
    // The peer reads late.
    let mut received = Vec::new();
    while let Some(read) = read(&mut peer, MUCH_BYTES) {
        received.extend(read);
        tokio::task::yield_now().await;
    }
    let (texts, close) = decode_frames(&received);
    assert!(!texts.is_empty() && sent.starts_with(&texts));
    assert_eq!(close, Some(close_payload(&Close::NOT_READ)));
}

#[tokio::test(start_paused = true)]
async fn an_idle_peer_is_pinged_and_need_not_answer() {
    let (mut peer, outgoing, _) = open();
    for _ in 0..10 {
        sleep(PING_INTERVAL + Duration::from_secs(1)).await;
        assert_eq!(read(&mut peer, 100), Some(vec![0x89, 0]));
    }
    outgoing.send(Bytes::from_static(b"x"));
    sleep(PING_INTERVAL).await;
    let received = read(&mut peer, 100).expect("it goes on");
    assert_eq!(
        received,
        [0x81, 1, b'x'],
        "a peer that was just written to is not pinged"
    );
    assert!(!outgoing.is_gone());
}
