//! Clients that are cut off at every record of a long message, and come back.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::client::{ClientOptIns, RejoinClient, ServerMessage};
use crate::fold::Fold;
use crate::server::{RejoinHarness, RejoinServer, ServerEndpoint};

/// How many letters the model says at a time.
const LETTERS: usize = 20;

/// How many messages the one who is cut off all the time hears before it is.
const CUT_AFTER: [usize; 4] = [1, 7, 40, 150];

/// A thread whose model is in the middle of a message, and those who were there.
pub struct PausedThread {
    pub observed: ObservedThread,
    observer: RejoinClient,
    stock: RejoinClient,
    stock_knows: Fold,
}

/// All that an observer who was never cut off was told of a thread.
pub struct ObservedThread {
    server: RejoinServer,
    thread: String,
    told: Vec<ServerMessage>,
}

impl PausedThread {
    /// The model says so many pieces and stops. Meanwhile one client is cut off again and again, and a stock
    /// client comes.
    pub fn open(bench: &RejoinHarness, pieces: usize) -> Result<Self> {
        let server = bench.serve()?;
        let mut observer = server.client(ServerEndpoint::Websocket, ClientOptIns::Numbers)?;
        let mut restless = FlakyClient::default();
        let thread = observer.start_thread()?;
        let mut told = Vec::new();
        // Time enough for each piece to be a record, on a machine that has some.
        let text = format!("MOCK text n={pieces} size={LETTERS} stamp=1 gap_ms=3 hold=1");
        observer.say(&thread, &text)?;
        let mut letters = 0;
        let mut stock = None;
        while letters < pieces * LETTERS {
            let message = observer.told(&thread)?;
            if message.method == "item/agentMessage/delta" {
                let delta = message.params()?;
                letters += delta["delta"].as_str().map_or(0, str::len);
            }
            told.push(message);
            restless.live_on(&server, &thread)?;
            if stock.is_none() && letters > pieces * LETTERS / 2 {
                let mut client = server.client(ServerEndpoint::Unix, ClientOptIns::Nothing)?;
                let params = json!({"threadId": thread});
                let answer = client.ask("thread/resume", params)?;
                let knows = Fold::of_turns(&answer["thread"]["turns"])?;
                stock = Some((client, knows));
            }
        }
        let (mut stock, mut stock_knows) = stock.context("a text of some length")?;
        // Whoever reads nothing is let go.
        while stock_knows.letters() < pieces * LETTERS {
            stock_knows.hear(&stock.told(&thread)?)?;
        }
        let cuts = restless.finish(&server, &thread, &told)?;
        println!(
            "figure: a message of {} records; {cuts} times cut off while it came",
            told.len()
        );
        let story = ObservedThread {
            server,
            thread,
            told,
        };
        Ok(Self {
            observed: story,
            observer,
            stock,
            stock_knows,
        })
    }

    /// The message ends. Everyone who was there knows the same as who reads the thread.
    pub fn complete(&mut self, bench: &RejoinHarness) -> Result<Fold> {
        bench.release(1)?;
        let ObservedThread { thread, told, .. } = &self.observed;
        let mut knows = Fold::default();
        for message in told {
            knows.hear(message)?;
        }
        knows.hear_out(&mut self.observer, thread)?;
        knows.is_shown(&mut self.observer, thread)?;
        self.stock_knows.hear_out(&mut self.stock, thread)?;
        self.stock_knows.is(&knows).context("the stock client")?;
        Ok(knows)
    }
}

impl ObservedThread {
    /// Where clients may be cut off: before anything, and after each number.
    fn cursors(&self) -> Vec<(u64, usize)> {
        let numbered = self.told.iter().enumerate();
        let numbered = numbered.filter_map(|(at, it)| Some((it.seq?, at + 1)));
        [(0, 0)].into_iter().chain(numbered).collect()
    }

    /// Whoever comes back after any record is told to the letter what the observer was.
    pub fn exact(&self, door: ServerEndpoint) -> Result<usize> {
        let cursors = self.cursors();
        for (seen, at) in &cursors {
            let mut client = self.server.client(door, ClientOptIns::Numbers)?;
            client.rejoin(&self.thread, *seen)?;
            for message in &self.told[*at..] {
                let heard = client.told(&self.thread)?;
                ensure!(
                    heard.is_same(message),
                    "after {seen}: {heard:?}, not {message:?}"
                );
            }
            // Nothing more comes before the answer to another question.
            let params = json!({"threadId": self.thread});
            client.ask("thread/unsubscribe", params)?;
            ensure!(
                client.is_silent(),
                "after {seen} more was told than there is"
            );
        }
        Ok(cursors.len())
    }

    /// Whoever comes back after any record, now that the message is complete, comes to know the same.
    pub fn folded(&self, door: ServerEndpoint, whole: &Fold) -> Result<usize> {
        let cursors = self.cursors();
        let mut known = Fold::default();
        let mut heard = 0;
        for (seen, at) in &cursors {
            for message in &self.told[heard..*at] {
                known.hear(message)?;
            }
            heard = *at;
            let mut client = self.server.client(door, ClientOptIns::Numbers)?;
            client.rejoin(&self.thread, *seen)?;
            let mut knows = known.clone();
            knows.hear_out(&mut client, &self.thread)?;
            knows.is(whole).with_context(|| format!("after {seen}"))?;
        }
        Ok(cursors.len())
    }
}

/// One who is cut off and comes back all the time.
#[derive(Default)]
struct FlakyClient {
    client: Option<RejoinClient>,
    /// What it was told since it came back.
    left: usize,
    told: Vec<ServerMessage>,
    cuts: usize,
}

impl FlakyClient {
    /// Hears one message more, or is cut off and comes back.
    fn live_on(&mut self, server: &RejoinServer, thread: &str) -> Result<()> {
        if self.left == 0 {
            self.cuts += usize::from(self.client.take().is_some());
            // What has no number is told again.
            while self.told.last().is_some_and(|it| it.seq.is_none()) {
                self.told.pop();
            }
            let seen = self.told.last().and_then(|it| it.seq).unwrap_or(0);
            let door = [ServerEndpoint::Websocket, ServerEndpoint::Unix][self.cuts % 2];
            let mut client = server.client(door, ClientOptIns::Numbers)?;
            client.rejoin(thread, seen)?;
            self.client = Some(client);
            self.left = CUT_AFTER[self.cuts % CUT_AFTER.len()];
        }
        let client = self.client.as_mut().context("it came back")?;
        self.told.push(client.told(thread)?);
        self.left -= 1;
        Ok(())
    }

    /// Hears all there is, which must be what the observer was told. Gives how often it was cut off.
    fn finish(
        mut self,
        server: &RejoinServer,
        thread: &str,
        told: &[ServerMessage],
    ) -> Result<usize> {
        while self.told.last().and_then(|it| it.seq) != told.last().and_then(|it| it.seq) {
            self.live_on(server, thread)?;
        }
        ensure!(
            self.told.len() == told.len(),
            "{} messages, not {}",
            self.told.len(),
            told.len()
        );
        for (heard, message) in self.told.iter().zip(told) {
            ensure!(heard.is_same(message), "{heard:?}, not {message:?}");
        }
        Ok(self.cuts)
    }
}
