//! Clients: they join, listen, ask for things, lose their connection and come back.

mod act;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use raddle_core::{
    AnswerRequest, Key, Outcome, Record, Refusal, RequestNumber, Seq, Settings, Thread, TurnId,
    TurnKind,
};

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
    Wish {
        /// The client's own number for it.
        number: u64,
        /// What.
        wish: Wish,
        /// Makes it safe to send again.
        key: Option<(Key, String)>,
    },
}

/// What a client hears.
#[derive(Clone, Debug)]
pub enum ToClient {
    /// You go on from where you were.
    Joined,
    /// You begin here.
    Snapshot(Box<Thread>),
    /// This happened.
    Record(Rc<Record>),
    /// Please answer this.
    Ask(RequestNumber),
    /// This came of what you asked.
    Reply(u64, Result<Outcome, Refusal>),
    /// Someone else has the thread.
    Moved(usize),
    /// The connection is over.
    Closed,
}

/// What a client wants.
#[derive(Clone, Debug)]
pub enum Wish {
    /// A turn.
    Turn {
        /// What is said.
        text: Option<String>,
        /// What for.
        kind: TurnKind,
        /// With what settings.
        settings: Option<Box<Settings>>,
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
    /// Out of sight, or back.
    Archive(bool),
    /// Other settings.
    Settings(Box<Settings>),
    /// Back to before a turn.
    Revert,
    /// A copy that goes its own way.
    Fork,
    /// Away with it.
    Delete,
    /// A thread that is there is to begin.
    Begin,
}

/// Something asked and not answered yet.
#[derive(Clone, Debug)]
pub struct Asking {
    wish: Wish,
    key: Option<(Key, String)>,
    at: u64,
    times: u32,
}

/// A client of one thread.
#[derive(Debug)]
pub struct Client {
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
    pub believes: Option<Thread>,
    seen: Option<Seq>,
    asked: BTreeSet<RequestNumber>,
    /// What it waits for.
    asking: BTreeMap<u64, Asking>,
    outcomes: BTreeMap<u64, Outcome>,
    next: u64,
    /// How much more it wants.
    pub commands_left: u32,
    moved: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Off,
    Trying(u64),
    On,
}

impl Client {
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
            believes: from_the_start.then(Thread::new),
            seen: from_the_start.then_some(Seq::ZERO),
            asked: BTreeSet::new(),
            asking: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            next: 0,
            commands_left: scenario.commands,
            moved: None,
        }
    }

    /// Whether it has heard everything and been answered everything.
    pub fn is_settled(&self, head: Seq) -> bool {
        self.state == State::On && self.seen == Some(head) && self.asking.is_empty()
    }
}
