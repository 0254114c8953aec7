//! Clients: they subscribe, send requests, lose their connection and reconnect.

mod act;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use raddle_core::{
    AnswerRequest, CommandOutcome, IdempotencyKey, Refusal, RequestNumber, Seq, SettingsChange,
    TurnId, TurnKind,
};
use support::Rng;

use crate::client_view::{AnnouncedRecord, ClientView, SentRequest};
use crate::scenario::Scenario;

/// A connection: its node, the incarnation of that node, and the client's number for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Index of the node.
    pub node: usize,
    /// Incarnation of the node.
    pub incarnation: u64,
    /// Number of the client's connection.
    pub count: u64,
}

/// A message of a client to a node.
#[derive(Clone, Debug)]
pub enum ToNode {
    /// Subscribes, from the last number received.
    Subscribe(Option<Seq>),
    /// Sends a request, perhaps again.
    Request {
        /// The client's own number for it.
        number: u64,
        /// Content of the request.
        request: ClientRequest,
        /// Idempotency key and request hash, if it may be sent again.
        key: Option<(IdempotencyKey, String)>,
    },
}

/// A message of a node to a client.
#[derive(Clone, Debug)]
pub enum ToClient {
    /// The subscription continues from the client's cursor.
    Joined,
    /// The subscription begins with a snapshot, at this number.
    Snapshot(Seq, Box<ClientView>),
    /// Some notifications of a record. The client that receives the last of them has the record's
    /// number.
    Notified(Rc<AnnouncedRecord>, Range<usize>),
    /// A request to the client.
    Ask(Rc<SentRequest>),
    /// The response to a request of the client.
    Reply(u64, Result<CommandOutcome, Refusal>),
    /// Another node owns the thread.
    Moved(usize),
    /// The connection is closed.
    Closed,
}

/// A request of a client.
#[derive(Clone, Debug)]
pub enum ClientRequest {
    /// Starts a turn, or joins one.
    Turn {
        /// Text of the message.
        text: Option<String>,
        /// Purpose of the turn.
        kind: TurnKind,
        /// Settings that change with it.
        settings: Option<Box<SettingsChange>>,
    },
    /// Adds input to the running turn.
    Steer {
        /// Text of the message; without one it is refused.
        text: Option<String>,
        /// Turn that the client expects.
        expected: TurnId,
    },
    /// Interrupts this turn, or any.
    Interrupt(Option<TurnId>),
    /// Answers a request of the server.
    Answer(Box<AnswerRequest>),
    /// Sets or clears the name.
    Rename(Option<String>),
    /// Changes the git metadata.
    Metadata(Option<String>),
    /// Injects history: a user's message, and a call with its output, or without.
    Inject {
        /// Text of the message.
        text: String,
        /// Whether the call has its output.
        is_whole: bool,
    },
    /// Sets a goal with this token budget; `None` pauses it.
    Goal(Option<u64>),
    /// Clears the goal of the thread.
    NoGoal,
    /// Appends input to the queue.
    Enqueue(String),
    /// Edits the queue of the thread.
    Queue(QueueEdit),
    /// Archives the thread, or restores it.
    Archive(bool),
    /// Changes the settings of the thread.
    Settings(Box<SettingsChange>),
    /// Reverts to before a turn; the node looks up where that begins.
    Revert(Option<Seq>),
    /// Forks the thread at some record.
    Fork,
    /// Deletes the thread for good.
    Delete,
    /// Starts a thread that exists already.
    Begin,
    /// Runs a command of the user's.
    Shell,
}

/// An edit of the queue; the node chooses the entry.
#[derive(Clone, Copy, Debug)]
pub enum QueueEdit {
    /// Changes the first entry.
    Change,
    /// Removes the first entry.
    Forget,
    /// Reverses the order of entries.
    Turn,
    /// Reorders with a list that names only the first entry.
    Cut,
    /// Starts a turn with the last entry.
    Start,
}

/// A request without a response yet.
#[derive(Clone, Debug)]
pub struct UnansweredRequest {
    request: ClientRequest,
    key: Option<(IdempotencyKey, String)>,
    at: u64,
    times: u32,
}

/// A client of one thread.
#[derive(Debug)]
pub struct SimClient {
    name: String,
    /// Current connection, or the last one.
    pub link: Link,
    /// State of the connection, with the time of the attempt.
    state: State,
    /// Arrival time of the newest message to it.
    pub inbound_until: u64,
    outbound_until: u64,
    last_received_at: u64,
    /// The thread as the client sees it.
    pub view: Option<ClientView>,
    /// Last number that it received.
    cursor: Option<Seq>,
    /// Last record sent to it, also if it had no notifications.
    reached: Seq,
    /// Requests that it can answer.
    open_requests: BTreeMap<RequestNumber, Rc<SentRequest>>,
    /// Requests that it received on this connection.
    received_requests: BTreeSet<RequestNumber>,
    /// Its own requests without a response.
    unanswered: BTreeMap<u64, UnansweredRequest>,
    outcomes: BTreeMap<u64, CommandOutcome>,
    next: u64,
    /// Number of commands that it will still send.
    pub commands_left: u32,
    moved: Option<usize>,
}

impl fmt::Display for SimClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, link, state) = (&self.name, &self.link, &self.state);
        write!(
            f,
            "{name} ({state:?} on {link:?}) has reached {}",
            self.reached
        )?;
        write!(f, " and waits for {:?}", self.unanswered.values())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Off,
    Trying(u64),
    On,
}

impl SimClient {
    /// Creates a client that has received nothing yet.
    pub fn new(name: usize, rng: &mut Rng, scenario: &Scenario) -> Self {
        // Some clients begin with a snapshot, others receive everything from the start.
        let from_the_start = rng.percent(50);
        Self {
            name: format!("client{name}"),
            link: Link::default(),
            state: State::Off,
            inbound_until: 0,
            outbound_until: 0,
            last_received_at: 0,
            view: from_the_start.then(ClientView::default),
            cursor: from_the_start.then_some(Seq::ZERO),
            reached: Seq::ZERO,
            open_requests: BTreeMap::new(),
            received_requests: BTreeSet::new(),
            unanswered: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            next: 0,
            commands_left: scenario.commands,
            moved: None,
        }
    }

    /// Returns the requests that it can answer.
    pub fn open_requests(&self) -> impl Iterator<Item = &RequestNumber> {
        self.open_requests.keys()
    }

    /// Whether it has received everything, and a response to each request.
    pub fn is_settled(&self, head: Seq) -> bool {
        self.state == State::On && self.reached == head && self.unanswered.is_empty()
    }
}
