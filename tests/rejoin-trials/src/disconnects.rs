//! Clients that are disconnected at every record of a long message, and resume.

use anyhow::{Context, Result, ensure};
use serde_json::json;
use support::{Fold, ServerMessage};

use crate::client::{ClientOptIns, RejoinClient};
use crate::server::{RejoinHarness, RejoinServer, ServerEndpoint};

/// Letters in each piece of the model's text.
const LETTERS: usize = 20;

/// Numbers of messages that the flaky client receives before it is disconnected.
const CUT_AFTER: [usize; 4] = [1, 7, 40, 150];

/// A thread whose model is paused in the middle of a message, and its connected clients.
pub struct PausedThread {
    pub observed: ObservedThread,
    observer: RejoinClient,
    stock: RejoinClient,
    stock_fold: Fold,
}

/// All notifications of a thread, as received by an observer that was never disconnected.
pub struct ObservedThread {
    server: RejoinServer,
    thread: String,
    messages: Vec<ServerMessage>,
}

impl PausedThread {
    /// Streams this many pieces and pauses. Meanwhile one client is disconnected again and again,
    /// and a stock client subscribes.
    pub fn open(harness: &RejoinHarness, pieces: usize) -> Result<Self> {
        let server = harness.serve()?;
        let mut observer = server.client(ServerEndpoint::Websocket, ClientOptIns::Numbers)?;
        let mut flaky = FlakyClient::default();
        let thread = observer.start_thread()?;
        let mut messages = Vec::new();
        // Slow enough for each piece to be a separate record, unless the machine is busy.
        let text = format!("MOCK text n={pieces} size={LETTERS} stamp=1 gap_ms=3 hold=1");
        observer.start_turn(&thread, &text)?;
        let mut letters = 0;
        let mut stock = None;
        while letters < pieces * LETTERS {
            let message = observer.next_notification(&thread)?;
            if message.method == "item/agentMessage/delta" {
                let delta = message.params()?;
                letters += delta["delta"].as_str().map_or(0, str::len);
            }
            messages.push(message);
            flaky.step(&server, &thread)?;
            if stock.is_none() && letters > pieces * LETTERS / 2 {
                let mut client = server.client(ServerEndpoint::Unix, ClientOptIns::Nothing)?;
                let params = json!({"threadId": thread});
                let answer = client.request("thread/resume", params)?;
                let fold = Fold::of_turns(&answer["thread"]["turns"])?;
                stock = Some((client, fold));
            }
        }
        let (mut stock, mut stock_fold) = stock.context("a text of some length")?;
        // A client that reads nothing would be disconnected.
        while stock_fold.open_letters() < pieces * LETTERS {
            stock_fold.apply(&stock.next_notification(&thread)?)?;
        }
        let cuts = flaky.finish(&server, &thread, &messages)?;
        println!(
            "figure: a message of {} records; {cuts} times cut off while it came",
            messages.len()
        );
        let observed = ObservedThread {
            server,
            thread,
            messages,
        };
        Ok(Self {
            observed,
            observer,
            stock,
            stock_fold,
        })
    }

    /// Completes the message. All connected clients must have the state that `thread/read` returns.
    pub fn complete(&mut self, harness: &RejoinHarness) -> Result<Fold> {
        harness.release(1)?;
        let ObservedThread {
            thread, messages, ..
        } = &self.observed;
        let mut fold = Fold::default();
        for message in messages {
            fold.apply(message)?;
        }
        self.observer.fold_until_over(&mut fold, thread)?;
        self.observer.ensure_equal(&fold, thread)?;
        self.stock.fold_until_over(&mut self.stock_fold, thread)?;
        self.stock_fold
            .ensure_equal(&fold)
            .context("the stock client")?;
        Ok(fold)
    }
}

impl ObservedThread {
    /// Returns the positions of disconnects: before anything, and after each number.
    fn cursors(&self) -> Vec<(u64, usize)> {
        let numbered = self.messages.iter().enumerate();
        let numbered = numbered.filter_map(|(at, it)| Some((it.seq?, at + 1)));
        [(0, 0)].into_iter().chain(numbered).collect()
    }

    /// Checks that a client that resumes after any record receives exactly what the observer did.
    pub fn check_messages(&self, endpoint: ServerEndpoint) -> Result<usize> {
        let cursors = self.cursors();
        for (after_seq, at) in &cursors {
            let mut client = self.server.client(endpoint, ClientOptIns::Numbers)?;
            client.rejoin(&self.thread, *after_seq)?;
            for message in &self.messages[*at..] {
                let received = client.next_notification(&self.thread)?;
                ensure!(
                    received.is_same(message),
                    "after {after_seq}: {received:?}, not {message:?}"
                );
            }
            // Nothing more arrives before the response to another request.
            let params = json!({"threadId": self.thread});
            client.request("thread/unsubscribe", params)?;
            ensure!(
                client.is_silent(),
                "after {after_seq} more was told than there is"
            );
        }
        Ok(cursors.len())
    }

    /// Checks that a client that resumes after any record, now that the message is complete,
    /// reaches the same state.
    pub fn check_final_state(&self, endpoint: ServerEndpoint, whole: &Fold) -> Result<usize> {
        let cursors = self.cursors();
        let mut before = Fold::default();
        let mut applied = 0;
        for (after_seq, at) in &cursors {
            for message in &self.messages[applied..*at] {
                before.apply(message)?;
            }
            applied = *at;
            let mut client = self.server.client(endpoint, ClientOptIns::Numbers)?;
            client.rejoin(&self.thread, *after_seq)?;
            let mut fold = before.clone();
            client.fold_until_over(&mut fold, &self.thread)?;
            fold.ensure_equal(whole)
                .with_context(|| format!("after {after_seq}"))?;
        }
        Ok(cursors.len())
    }
}

/// A client that is disconnected and resumes again and again.
#[derive(Default)]
struct FlakyClient {
    client: Option<RejoinClient>,
    /// Number of messages until the next disconnect.
    remaining: usize,
    messages: Vec<ServerMessage>,
    cuts: usize,
}

impl FlakyClient {
    /// Receives one more message, or disconnects and resumes first.
    fn step(&mut self, server: &RejoinServer, thread: &str) -> Result<()> {
        if self.remaining == 0 {
            self.cuts += usize::from(self.client.take().is_some());
            // Messages without a number are sent again.
            while self.messages.last().is_some_and(|it| it.seq.is_none()) {
                self.messages.pop();
            }
            let after_seq = self.messages.last().and_then(|it| it.seq).unwrap_or(0);
            let endpoint = [ServerEndpoint::Websocket, ServerEndpoint::Unix][self.cuts % 2];
            let mut client = server.client(endpoint, ClientOptIns::Numbers)?;
            client.rejoin(thread, after_seq)?;
            self.client = Some(client);
            self.remaining = CUT_AFTER[self.cuts % CUT_AFTER.len()];
        }
        let client = self.client.as_mut().context("it came back")?;
        self.messages.push(client.next_notification(thread)?);
        self.remaining -= 1;
        Ok(())
    }

    /// Receives the rest, and checks that all messages equal those of the observer. Returns the
    /// number of disconnects.
    fn finish(
        mut self,
        server: &RejoinServer,
        thread: &str,
        expected: &[ServerMessage],
    ) -> Result<usize> {
        while self.messages.last().and_then(|it| it.seq) != expected.last().and_then(|it| it.seq) {
            self.step(server, thread)?;
        }
        ensure!(
            self.messages.len() == expected.len(),
            "{} messages, not {}",
            self.messages.len(),
            expected.len()
        );
        for (received, message) in self.messages.iter().zip(expected) {
            ensure!(received.is_same(message), "{received:?}, not {message:?}");
        }
        Ok(self.cuts)
    }
}
