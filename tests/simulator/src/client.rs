//! Clients: they join, listen, ask for things, lose their connection and come back.

mod act;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use raddle_core::{
    AnswerRequest, CommandOutcome, IdempotencyKey, Refusal, RequestNumber, Seq, SettingsChange,
    TurnId, TurnKind,
};

use crate::client_view::{ClientView, PutRequest, ToldRecord};
use crate::rng::Rng;
use crate::scenario::Scenario;

/// A connection: to which node, in which of its lives, and which of the client's it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// The node.
    pub node: usize,
    /// Which of its lives.
    pub life: u64,
    /// The client's count.
    pub count: u64,
}

/// What a client says.
#[derive(Clone, Debug)]
pub enum ToNode {
    /// Tell me what happens, from the last number I saw.
    Subscribe(Option<Seq>),
    /// Do this.
    Request {
        /// The client's own number for it.
        number: u64,
        /// What.
        wish: ClientRequest,
        /// Makes it safe to send again.
        key: Option<(IdempotencyKey, String)>,
    },
}

/// What a client hears.
#[derive(Clone, Debug)]
pub enum ToClient {
    /// You go on from where you were.
    Joined,
    /// You begin here, at this number.
    Snapshot(Seq, Box<ClientView>),
    /// This happened: some of the words for it. Who hears the last of them has the record's number.
    Notified(Rc<ToldRecord>, Range<usize>),
    /// Please answer this.
    Ask(Rc<PutRequest>),
    /// This came of what you asked.
    Reply(u64, Result<CommandOutcome, Refusal>),
    /// Someone else has the thread.
    Moved(usize),
    /// The connection is over.
    Closed,
}

/// What a client wants.
#[derive(Clone, Debug)]
pub enum ClientRequest {
    /// A turn.
    Turn {
        /// What is said.
        text: Option<String>,
        /// What for.
        kind: TurnKind,
        /// With what settings.
        settings: Option<Box<SettingsChange>>,
    },
    /// More input.
    Steer {
        /// What is said; nothing is refused.
        text: Option<String>,
        /// For which turn.
        expected: TurnId,
    },
    /// Stop.
    Interrupt(Option<TurnId>),
    /// An answer.
    Answer(Box<AnswerRequest>),
    /// A name.
    Rename(Option<String>),
    /// What is noted of the repository.
    Metadata(Option<String>),
    /// History that did not happen here: what a user said, and a call with its output, or without.
    Inject {
        /// What is said.
        text: String,
        /// Whether the call has its output.
        is_whole: bool,
    },
    /// A goal, with so many tokens for it; or it rests.
    Goal(Option<u64>),
    /// No goal any more.
    NoGoal,
    /// Input that waits for the end of the turn.
    Enqueue(String),
    /// Something else is done about what waits.
    Queue(QueueEdit),
    /// Out of sight, or back.
    Archive(bool),
    /// Other settings.
    Settings(Box<SettingsChange>),
    /// Back to before a turn; the node says where that begins.
    Revert(Option<Seq>),
    /// A copy that goes its own way.
    Fork,
    /// Away with it.
    Delete,
    /// A thread that is there is to begin.
    Begin,
    /// A command of the user's own.
    Shell,
}

/// What is done about what waits; the node says which it is.
#[derive(Clone, Copy, Debug)]
pub enum QueueEdit {
    /// The first is changed.
    Change,
    /// The first is forgotten.
    Forget,
    /// The order is turned round.
    Turn,
    /// A new order names only the first.
    Cut,
    /// The last is begun with.
    Start,
}

/// Something asked and not answered yet.
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
    /// Its connection, or the last one it had.
    pub link: Link,
    /// Whether the connection is up, and since when it is tried if not.
    state: State,
    /// When the newest message to it arrives.
    pub heard_until: u64,
    said_until: u64,
    last_heard: u64,
    /// The thread as it believes it to be.
    pub believes: Option<ClientView>,
    /// The last number it saw.
    seen: Option<Seq>,
    /// The last record that was told to it, also if there were no words for it.
    reached: Seq,
    /// The requests it can answer.
    asked: BTreeMap<RequestNumber, Rc<PutRequest>>,
    /// Those that were put to it on this connection.
    put: BTreeSet<RequestNumber>,
    /// What it waits for.
    asking: BTreeMap<u64, UnansweredRequest>,
    outcomes: BTreeMap<u64, CommandOutcome>,
    next: u64,
    /// How much more it wants.
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
        write!(f, " and waits for {:?}", self.asking.values())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Off,
    Trying(u64),
    On,
}

impl SimClient {
    /// One that has heard nothing yet.
    pub fn new(name: usize, rng: &mut Rng, scenario: &Scenario) -> Self {
        // Some begin with a snapshot, others want to hear everything from the start.
        let from_the_start = rng.percent(50);
        Self {
            name: format!("client{name}"),
            link: Link::default(),
            state: State::Off,
            heard_until: 0,
            said_until: 0,
            last_heard: 0,
            believes: from_the_start.then(ClientView::default),
            seen: from_the_start.then_some(Seq::ZERO),
            reached: Seq::ZERO,
            asked: BTreeMap::new(),
            put: BTreeSet::new(),
            asking: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            next: 0,
            commands_left: scenario.commands,
            moved: None,
        }
    }

    /// The requests before it.
    pub fn asked(&self) -> impl Iterator<Item = &RequestNumber> {
        self.asked.keys()
    }

    /// Whether it has heard everything and been answered everything.
    pub fn is_settled(&self, head: Seq) -> bool {
        self.state == State::On && self.reached == head && self.asking.is_empty()
    }
}
