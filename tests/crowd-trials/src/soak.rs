//! Mixed load for a long time, with randomly killed clients: the resources of the server stay
//! constant.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};
use support::Rng;

use crate::client::CrowdClient;
use crate::fold::{PIECE, TimedFold};
use crate::server::{CrowdServer, ServerEndpoint};
use crate::slow_clients::read_turn;

const WORKERS: usize = 6;

/// Interval between samples of the server's resources.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(500);

/// Number of turns after which a thread is deleted.
const TURNS_MAX: usize = 10;

/// Number of time spans; each is compared with the first.
const SPANS: usize = 5;

pub struct SoakSize {
    pub time: Duration,
    /// Warm-up, which does not count.
    pub warm: Duration,
    /// Maximum difference between spans, in percent.
    pub percent: u64,
}

#[derive(Default)]
struct SoakCounts {
    turns: AtomicUsize,
    kills: AtomicUsize,
}

/// Resources of the server at one moment.
struct ResourceSample {
    memory: u64,
    descriptors: usize,
}

pub fn run(server: &CrowdServer, size: &SoakSize) -> Result<()> {
    let (is_over, counts) = (AtomicBool::new(false), SoakCounts::default());
    let samples = thread::scope(|scope| {
        let (is_over, counts) = (&is_over, &counts);
        let work = |seed| scope.spawn(move || work(server, seed, is_over, counts));
        let workers: Vec<_> = (1..=WORKERS).map(|seed| work(seed as u64)).collect();
        let samples = watch(server, size, || workers.iter().any(|it| it.is_finished()));
        is_over.store(true, Ordering::Release);
        for worker in workers {
            worker
                .join()
                .map_err(|_| anyhow!("one of them panicked"))??;
        }
        samples
    })?;
    let count = |it: &AtomicUsize| it.load(Ordering::Acquire);
    println!(
        "figure: {} turns, {} clients killed in the middle of one",
        count(&counts.turns),
        count(&counts.kills)
    );
    check_constant("memory in KiB", &samples, size.percent, |it| {
        it.memory >> 10
    })?;
    check_constant("descriptors", &samples, size.percent, |it| {
        it.descriptors as u64
    })
}

/// Samples the server until the time is up, or a worker has ended early.
fn watch(
    server: &CrowdServer,
    size: &SoakSize,
    has_ended: impl Fn() -> bool,
) -> Result<Vec<ResourceSample>> {
    let start = Instant::now();
    let mut samples = Vec::new();
    while start.elapsed() < size.time && !has_ended() {
        thread::sleep(SAMPLE_INTERVAL);
        if start.elapsed() >= size.warm {
            samples.push(ResourceSample {
                memory: server.memory()?,
                descriptors: server.descriptors()?,
            });
        }
    }
    Ok(samples)
}

/// Checks that the median of each span is close to that of the first.
fn check_constant(
    what: &str,
    samples: &[ResourceSample],
    percent: u64,
    measure: impl Fn(&ResourceSample) -> u64,
) -> Result<()> {
    let spans = samples.chunks(samples.len().div_ceil(SPANS).max(1));
    let medians: Vec<u64> = spans
        .map(|span| {
            let mut span: Vec<u64> = span.iter().map(&measure).collect();
            span.sort_unstable();
            span[span.len() / 2]
        })
        .collect();
    println!("figure: {what}: {medians:?}");
    let first = *medians.first().context("some time to look")?;
    for median in medians {
        ensure!(
            median.abs_diff(first) * 100 <= first * percent,
            "{what} went from {first} to {median}, more than {percent} %"
        );
    }
    Ok(())
}

/// Runs one user until the end of the soak.
fn work(server: &CrowdServer, seed: u64, is_over: &AtomicBool, counts: &SoakCounts) -> Result<()> {
    let mut rng = Rng::new(seed);
    let mut user = User::new(server, &mut rng)?;
    while !is_over.load(Ordering::Acquire) {
        let turn = user.turn(server, &mut rng, counts);
        turn.with_context(|| format!("user {seed} with thread {}", user.thread))?;
        counts.turns.fetch_add(1, Ordering::AcqRel);
    }
    Ok(())
}

struct User {
    client: CrowdClient,
    thread: String,
    turns: usize,
    /// Number of the last received record.
    last_seq: u64,
}

impl User {
    fn new(server: &CrowdServer, rng: &mut Rng) -> Result<Self> {
        let mut client = server.client(random_endpoint(rng))?;
        let thread = client.start_thread_with(json!({"approvalPolicy": "never"}))?;
        Ok(Self {
            client,
            thread,
            turns: 0,
            last_seq: 0,
        })
    }

    /// Runs one turn, with or without a kill; then an action between turns.
    fn turn(&mut self, server: &CrowdServer, rng: &mut Rng, counts: &SoakCounts) -> Result<()> {
        self.client.start_turn(&self.thread, &random_prompt(rng))?;
        let mut fold = TimedFold::after(self.last_seq);
        if rng.below(3) == 0 {
            let messages = rng.index(40);
            self.read_some(&mut fold, messages)?;
            counts.kills.fetch_add(1, Ordering::AcqRel);
            // A killed client closes nothing.
            self.client = server.client(random_endpoint(rng))?;
            fold = self.resume(fold)?;
        }
        read_turn(&mut self.client, &mut fold)?;
        self.last_seq = fold.last_seq();
        self.turns += 1;
        match rng.below(6) {
            0 => drop(self.client.request("thread/list", json!({"limit": 20}))?),
            1 => self.read(&fold)?,
            _ => {}
        }
        if self.turns >= TURNS_MAX {
            let params = json!({"threadId": self.thread});
            self.client.request("thread/delete", params)?;
            *self = Self::new(server, rng)?;
        }
        Ok(())
    }

    /// Resumes from the last record, or from a snapshot if that cursor has expired.
    fn resume(&mut self, previous: TimedFold) -> Result<TimedFold> {
        let params = json!({"threadId": self.thread, "afterSeq": previous.last_seq()});
        let error = match self.client.try_request("thread/resume", params)? {
            Ok(_) => return Ok(previous),
            Err(error) => error,
        };
        ensure!(
            error["data"]["errorInfo"] == "cursorExpired",
            "thread/resume was refused: {error}"
        );
        let params = json!({"threadId": self.thread});
        let response = self.client.request("thread/resume", params)?;
        let turns = response["thread"]["turns"].as_array().context("turns")?;
        let fold = TimedFold::of_turn(turns.last().context("a turn")?)?;
        if fold.is_over() {
            // A snapshot has no record number from which the next turn could continue.
            self.turns = TURNS_MAX;
        }
        Ok(fold)
    }

    fn read_some(&mut self, fold: &mut TimedFold, messages: usize) -> Result<()> {
        for _ in 0..messages {
            if fold.is_over() {
                break;
            }
            fold.apply(self.client.wire.receive()?, 0)?;
        }
        Ok(())
    }

    /// Checks that the server's snapshot ends with the received state.
    fn read(&mut self, fold: &TimedFold) -> Result<()> {
        let params = json!({"threadId": self.thread, "includeTurns": true});
        let response = self.client.request("thread/read", params)?;
        let turns = response["thread"]["turns"].as_array().context("turns")?;
        let last = turns.last().context("a turn")?;
        let text = |item: &Value| item["text"].as_str().map_or(0, str::len);
        let items = last["items"].as_array().context("items")?;
        let letters: usize = items.iter().map(text).sum();
        ensure!(
            letters == fold.letters(),
            "{letters} letters are shown, {} were told",
            fold.letters()
        );
        Ok(())
    }
}

/// Returns a random prompt: a short or a long text, fast or slow, or a command.
fn random_prompt(rng: &mut Rng) -> String {
    if rng.below(4) == 0 {
        let arguments = json!({"command": ["echo", "warp and weft"]});
        return format!("MOCK call name=shell arguments={arguments}");
    }
    let most = [20, 200, 2000][rng.index(3)];
    let pieces = 1 + rng.below(most);
    let gap = [0, 0, 100, 1000][rng.index(4)];
    format!("MOCK text n={pieces} size={PIECE} stamp=1 gap_us={gap}")
}

fn random_endpoint(rng: &mut Rng) -> ServerEndpoint {
    [ServerEndpoint::Tcp, ServerEndpoint::Unix][rng.index(2)]
}
