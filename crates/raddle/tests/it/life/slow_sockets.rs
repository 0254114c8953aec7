//! Many sockets that drip and one client that never reads, beside ten clients that notice nothing.
//!
//! The ten are measured without the crowd and with it, by turns, on one server. Of each kind the round
//! in the middle counts: a machine that is busy for a moment does not decide.

mod crowd;

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use self::crowd::Crowd;
use crate::support::server::Server;
use crate::support::websocket::Websocket;
use crate::support::{code, eventually, request};

const MIB: u64 = 1 << 20;

/// glibc gives large blocks back as soon as they are free: what is measured is what the server holds.
const MEASURED: &str = "export MALLOC_MMAP_THRESHOLD_=131072";

/// How long the binary lets a handshake take, and how late it may notice.
const HANDSHAKE: Duration = Duration::from_secs(10);
const LATE: Duration = Duration::from_secs(2);

struct Proof {
    /// What the shell does before it starts the server.
    before: &'static str,
    sockets: usize,
    rounds: usize,
    /// How often each of the ten asks in one round.
    turns: usize,
    ratio_max: f64,
}

/// A slice of the proof below, with fewer descriptors than there are sockets. It fails when handshakes
/// have no pool of their own (files can no longer be opened), when they have no deadline (they live
/// on), and when the one that does not read is read (memory, and it never has to wait).
#[test]
fn slow_sockets_slice() {
    prove(&Proof {
        before: "ulimit -n 160",
        sockets: 200,
        rounds: 5,
        turns: 150,
        ratio_max: 4.0,
    });
}

/// The whole proof, for a quiet machine.
#[test]
#[ignore = "takes a minute; `cargo xtask prove slow-sockets` runs it"]
fn slow_sockets_full() {
    raddle_rpc::raise_descriptor_limit();
    prove(&Proof {
        before: "true",
        sockets: 1000,
        rounds: 31,
        turns: 400,
        ratio_max: 1.2,
    });
}

fn prove(proof: &Proof) {
    let server = Server::start_under(
        &format!("{MEASURED}; {}", proof.before),
        &["--listen", "ws://127.0.0.1:0", "--insecure-loopback"],
    );
    let file = server.home().join("file");
    std::fs::write(&file, "hello").expect("a file");
    let mut ten: Vec<Websocket> = (0..10).map(|_| server.client()).collect();
    // The first requests pay for what is done once.
    p99(&mut ten, &file, proof.turns);
    let descriptors = server.descriptors();
    server.forget_peak();
    let memory = server.memory("VmRSS");

    let (mut alone, mut beside): (Vec<Duration>, Vec<Duration>) = Default::default();
    for _ in 0..proof.rounds {
        alone.push(p99(&mut ten, &file, proof.turns));
        let crowd = Crowd::gather(&server, proof.sockets);
        beside.push(p99(&mut ten, &file, proof.turns));
        crowd.disperse();
        eventually("the server to be rid of the crowd", || {
            (server.descriptors() <= descriptors).then_some(())
        });
    }
    eprintln!("p99 without the crowd: {alone:.0?}\np99 with the crowd: {beside:.0?}");
    let (alone, beside) = (middle(alone), middle(beside));
    let ratio = beside.as_secs_f64() / alone.as_secs_f64();

    // No socket drips for longer than a handshake may take.
    let crowd = Crowd::gather(&server, proof.sockets);
    let begun = Instant::now();
    while begun.elapsed() < HANDSHAKE + 2 * LATE {
        p99(&mut ten, &file, 10);
    }
    let oldest = crowd.disperse();

    let grown = server.memory("VmHWM").saturating_sub(memory);
    let sockets = proof.sockets;
    eprintln!(
        "{sockets} sockets: p99 {alone:?} without and {beside:?} with, ratio {ratio:.2}, \
         the oldest lived {oldest:?}, memory grew by {} MiB",
        grown / MIB
    );
    assert!(ratio <= proof.ratio_max, "the ratio is {ratio:.2}");
    assert!(oldest <= HANDSHAKE + LATE, "one dripped for {oldest:?}");
    // Answers wait in a queue of 8 MiB, each in a block up to twice its length, and the allocator may
    // keep those of another round elsewhere; a handshake has a buffer of its own.
    let grown_max = 40 * MIB + sockets as u64 * (32 << 10);
    assert!(grown <= grown_max, "grew by {grown} bytes");
    drop(ten);
    server.stop();
}

fn middle(mut all: Vec<Duration>) -> Duration {
    all.sort_unstable();
    all[all.len() / 2]
}

/// All ask at once, take their answers, and ask again; the time that all but the slowest of a hundred
/// requests took.
fn p99(ten: &mut [Websocket], file: &Path, turns: usize) -> Duration {
    // Once a round also something that needs a descriptor.
    for client in ten.iter_mut() {
        let answer = client.ask(&request("file", "fs/readFile", json!({ "path": file })));
        assert_eq!(code(&answer), None, "{answer}");
    }
    let mut taken: Vec<Duration> = Vec::new();
    for turn in 0..turns {
        let question = request(turn, "account/read", json!({}));
        let asked: Vec<Instant> = ten
            .iter_mut()
            .map(|client| {
                let begun = Instant::now();
                client.send(&question);
                begun
            })
            .collect();
        for (client, begun) in ten.iter_mut().zip(asked) {
            let answer = client.receive();
            taken.push(begun.elapsed());
            assert_eq!(answer["id"], turn);
            assert_eq!(code(&answer), None);
        }
    }
    taken.sort_unstable();
    taken[taken.len() * 99 / 100]
}
