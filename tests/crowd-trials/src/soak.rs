//! Mixed load for a long time, with clients that are killed at random: what the server holds stays the same.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};

use crate::client::CrowdClient;
use crate::fold::{Fold, PIECE};
use crate::rng::Dice;
use crate::server::{CrowdServer, ServerEndpoint};
use crate::slow_clients::hear_out;
use crate::wire::WireEvent;

const WORKERS: usize = 6;

/// How often the server is looked at.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(500);

/// After so many turns a thread is deleted.
const TURNS_MAX: usize = 10;

/// How many spans of time are compared with the first.
const SPANS: usize = 5;

pub struct SoakSize {
    pub time: Duration,
    /// What comes before this does not count.
    pub warm: Duration,
    /// By how many hundredths spans may differ.
    pub percent: u64,
}

#[derive(Default)]
struct SoakCounts {
    turns: AtomicUsize,
    kills: AtomicUsize,
}

/// What the server held at one moment.
struct ResourceSample {
    memory: u64,
    descriptors: usize,
}

pub fn run(server: &CrowdServer, size: &SoakSize) -> Result<()> {
    let (is_over, counts) = (AtomicBool::new(false), SoakCounts::default());
    let looks = thread::scope(|scope| {
        let (is_over, counts) = (&is_over, &counts);
        let work = |seed| scope.spawn(move || work(server, seed, is_over, counts));
        let working: Vec<_> = (1..=WORKERS).map(|seed| work(seed as u64)).collect();
        let looks = watch(server, size, || working.iter().any(|it| it.is_finished()));
        is_over.store(true, Ordering::Release);
        for one in working {
            one.join().map_err(|_| anyhow!("one of them panicked"))??;
        }
        looks
    })?;
    let count = |it: &AtomicUsize| it.load(Ordering::Acquire);
    println!(
        "figure: {} turns, {} clients killed in the middle of one",
        count(&counts.turns),
        count(&counts.kills)
    );
    flat("memory in KiB", &looks, size.percent, |it| it.memory >> 10)?;
    flat("descriptors", &looks, size.percent, |it| {
        it.descriptors as u64
    })
}

/// Looks at the server until the time is up, or one of those who work has ended before.
fn watch(
    server: &CrowdServer,
    size: &SoakSize,
    has_ended: impl Fn() -> bool,
) -> Result<Vec<ResourceSample>> {
    let begun = Instant::now();
    let mut looks = Vec::new();
    while begun.elapsed() < size.time && !has_ended() {
        thread::sleep(SAMPLE_INTERVAL);
        if begun.elapsed() >= size.warm {
            looks.push(ResourceSample {
                memory: server.memory()?,
                descriptors: server.descriptors()?,
            });
        }
    }
    Ok(looks)
}

/// The middle of each span is about that of the first.
fn flat(
    what: &str,
    looks: &[ResourceSample],
    percent: u64,
    of: impl Fn(&ResourceSample) -> u64,
) -> Result<()> {
    let spans = looks.chunks(looks.len().div_ceil(SPANS).max(1));
    let middles: Vec<u64> = spans
        .map(|span| {
            let mut span: Vec<u64> = span.iter().map(&of).collect();
            span.sort_unstable();
            span[span.len() / 2]
        })
        .collect();
    println!("figure: {what}: {middles:?}");
    let first = *middles.first().context("some time to look")?;
    for middle in middles {
        ensure!(
            middle.abs_diff(first) * 100 <= first * percent,
            "{what} went from {first} to {middle}, more than {percent} %"
        );
    }
    Ok(())
}

/// One user, who goes on until it is over.
fn work(server: &CrowdServer, seed: u64, is_over: &AtomicBool, counts: &SoakCounts) -> Result<()> {
    let mut dice = Dice::new(seed);
    let mut user = User::new(server, &mut dice)?;
    while !is_over.load(Ordering::Acquire) {
        let turn = user.turn(server, &mut dice, counts);
        turn.with_context(|| format!("user {seed} with thread {}", user.thread))?;
        counts.turns.fetch_add(1, Ordering::AcqRel);
    }
    Ok(())
}

struct User {
    client: CrowdClient,
    thread: String,
    turns: usize,
    /// The number of the last record it was told.
    seen: u64,
}

impl User {
    fn new(server: &CrowdServer, dice: &mut Dice) -> Result<Self> {
        let mut client = server.client(door(dice))?;
        let thread = client.start_thread_with(json!({"approvalPolicy": "never"}))?;
        Ok(Self {
            client,
            thread,
            turns: 0,
            seen: 0,
        })
    }

    /// One turn, with or without a cut; then what a user does between turns.
    fn turn(&mut self, server: &CrowdServer, dice: &mut Dice, counts: &SoakCounts) -> Result<()> {
        self.client.say(&self.thread, &said(dice))?;
        let mut fold = Fold::after(self.seen);
        if dice.below(3) == 0 {
            let messages = dice.below(40);
            self.hear_some(&mut fold, messages)?;
            counts.kills.fetch_add(1, Ordering::AcqRel);
            // Whoever is killed closes nothing.
            self.client = server.client(door(dice))?;
            fold = self.come_back(fold)?;
        }
        hear_out(&mut self.client, &mut fold)?;
        self.seen = fold.seen;
        self.turns += 1;
        match dice.below(6) {
            0 => drop(self.client.ask("thread/list", json!({"limit": 20}))?),
            1 => self.read(&fold)?,
            _ => {}
        }
        if self.turns >= TURNS_MAX {
            let params = json!({"threadId": self.thread});
            self.client.ask("thread/delete", params)?;
            *self = Self::new(server, dice)?;
        }
        Ok(())
    }

    /// Hears on from where it was cut off, or, where that cannot be told any more, from how things stand.
    fn come_back(&mut self, known: Fold) -> Result<Fold> {
        let params = json!({"threadId": self.thread, "afterSeq": known.seen});
        let error = match self.client.ask_for("thread/resume", params)? {
            Ok(_) => return Ok(known),
            Err(error) => error,
        };
        ensure!(
            error["data"]["errorInfo"] == "cursorExpired",
            "thread/resume was refused: {error}"
        );
        let params = json!({"threadId": self.thread});
        let shown = self.client.ask("thread/resume", params)?;
        let turns = shown["thread"]["turns"].as_array().context("turns")?;
        let fold = Fold::of_turn(turns.last().context("a turn")?)?;
        if fold.is_over() {
            // It was told no number to go on from in the next turn.
            self.turns = TURNS_MAX;
        }
        Ok(fold)
    }

    fn hear_some(&mut self, fold: &mut Fold, messages: usize) -> Result<()> {
        for _ in 0..messages {
            if fold.is_over() {
                break;
            }
            match self.client.wire.next()? {
                WireEvent::Text(text, _) => fold.hear(text, 0)?,
                _ => anyhow::bail!("the connection ended"),
            }
        }
        Ok(())
    }

    /// What the server shows ends with what was told.
    fn read(&mut self, fold: &Fold) -> Result<()> {
        let params = json!({"threadId": self.thread, "includeTurns": true});
        let shown = self.client.ask("thread/read", params)?;
        let turns = shown["thread"]["turns"].as_array().context("turns")?;
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

/// A short or a long text, in a hurry or not, or a command.
fn said(dice: &mut Dice) -> String {
    if dice.below(4) == 0 {
        let arguments = json!({"command": ["echo", "warp and weft"]});
        return format!("MOCK call name=shell arguments={arguments}");
    }
    let most = [20, 200, 2000][dice.below(3)];
    let pieces = 1 + dice.below(most);
    let gap = [0, 0, 100, 1000][dice.below(4)];
    format!("MOCK text n={pieces} size={PIECE} stamp=1 gap_us={gap}")
}

fn door(dice: &mut Dice) -> ServerEndpoint {
    [ServerEndpoint::Tcp, ServerEndpoint::Unix][dice.below(2)]
}
