//! Parts of the simulated world.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use raddle_core::ports::AppendError;
use raddle_core::{
    Base, CatchUpReader, Command, Epoch, ItemBody, ItemId, Seq, ThreadId, ThreadWriter, Token,
};
use support::Rng;

use crate::check::Oracle;
use crate::client::{ClientRequest, Link, SimClient, ToClient, ToNode};
use crate::fleet::{Commit, NodeJournal, QueryFailure, Response, Statement, Task};
use crate::scenario::PlannedFault;
use crate::store::{Append, LogRow};

/// A thread with all of its own state, randomness included, so that no other thread affects it.
pub struct SimThread {
    /// Id of the thread.
    pub id: ThreadId,
    /// Source of randomness of this thread only.
    pub rng: Rng,
    /// Oracle of the thread.
    pub oracle: Oracle,
    /// Lease on writing it.
    pub lease: Lease,
    /// Clients of the thread.
    pub clients: Vec<SimClient>,
    /// Number of times it was opened.
    pub openings: u64,
    /// Number of ids used so far.
    pub minted: u64,
    /// Number of starts of each tool, over all nodes: effects in the world survive crashes.
    pub starts: BTreeMap<ItemId, u32>,
    /// Number of turns that clients will still start.
    pub turns_left: u32,
    /// Fault of its store, and the time of its end.
    pub store_fault: Option<(StoreFault, u64)>,
    /// Whether it was removed.
    pub removed: bool,
    /// Whether it may still be forked.
    pub forks: bool,
}

/// Lease on writing a thread. It decides which node tries to write, never which may.
#[derive(Clone, Debug, Default)]
pub struct Lease {
    /// Node and its incarnation.
    pub holder: Option<(usize, u64)>,
    /// Newest epoch that was granted.
    pub epoch: u64,
    /// Time at which it expires.
    pub until: u64,
}

/// A fault of a thread's store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// The store cannot be reached.
    Unavailable,
    /// The store has no space.
    Full,
    /// The store cannot be written.
    ReadOnly,
}

/// A node, with the state of its process.
#[derive(Default)]
pub struct SimNode {
    /// Whether its process is running.
    pub alive: bool,
    /// Number of the process incarnation.
    pub incarnation: u64,
    /// Whether it is paused.
    pub paused: bool,
    /// Events that arrived while it was paused.
    pub deferred: Vec<Next>,
    /// Offset of its clock in milliseconds.
    pub clock: i64,
    /// Threads that are open on it.
    pub live: BTreeMap<usize, OpenThread>,
    /// Threads that it is opening, with the waiting clients.
    pub pending_opens: BTreeMap<usize, Vec<OpenWaiter>>,
    /// Journal of its process, on a database.
    pub journal: Option<Rc<NodeJournal>>,
    /// Tasks of the journal.
    pub tasks: Vec<Task>,
    /// Time until which its connections to the database carry nothing in one direction, and whether
    /// it is the one of the responses.
    pub partition: Option<(u64, bool)>,
}

/// State of the connections to the database.
#[derive(Debug)]
pub struct DatabaseNet {
    /// Source of its randomness.
    pub rng: Rng,
    /// Time until which there is no primary.
    pub down_until: u64,
    /// Nodes, as bits, that still reach the former primary.
    pub former_of: u64,
    /// Number of appends so far.
    pub attempts: u64,
    /// Appends of which the caller knows that nothing was stored.
    pub failed: BTreeSet<u64>,
    /// Appends that are stored.
    pub stored: BTreeSet<u64>,
    /// Number of statements so far.
    pub sent: u64,
    /// Number of statements when each thread was last taken, or a doubt about it settled.
    pub settled: BTreeMap<usize, u64>,
    /// An append that is stored, and was reported as one that is not.
    pub denied: Option<u64>,
}

impl DatabaseNet {
    /// Creates the connections of a run.
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Rng::for_purpose(seed, 50),
            down_until: 0,
            former_of: 0,
            attempts: 0,
            failed: BTreeSet::new(),
            stored: BTreeSet::new(),
            sent: 0,
            settled: BTreeMap::new(),
            denied: None,
        }
    }
}

/// A statement under way.
pub struct QueryArrival {
    /// Index of the sending node.
    pub node: usize,
    /// Incarnation of that node.
    pub incarnation: u64,
    /// Number of the statement at that node.
    pub id: u64,
    /// Statement that was sent.
    pub statement: Statement,
    /// Condition that its commit waits for.
    pub commit: Commit,
    /// Number of changes of the primary when it was sent.
    pub generation: u64,
    /// Number of statements that were sent before.
    pub sent: u64,
    /// Whether the response arrives.
    pub answers: bool,
    /// Whether the server found the log not sealed before, for the bug that reads without a lock.
    pub has_read_flag: bool,
}

/// A client that waits for a thread to be opened.
pub struct OpenWaiter {
    /// Index of the client.
    pub client: usize,
    /// Connection of the client.
    pub link: Link,
    /// Last number that it received.
    pub cursor: Option<Seq>,
}

/// A thread that is open on a node.
pub struct OpenThread {
    /// Number of this opening of the thread.
    pub opening: u64,
    /// Epoch of the owner.
    pub epoch: Epoch,
    /// Writer of the core.
    pub owner: ThreadWriter,
    /// Whether a response of the store is awaited.
    pub busy: bool,
    /// Whether the store had no space for the last append.
    pub full: bool,
    /// Log to copy in front of the first append.
    pub copy: Option<Rc<Vec<Rc<LogRow>>>>,
    /// Subscribers, by index of the client.
    pub subscribers: BTreeMap<usize, SimSubscriber>,
    /// Callers that wait for a response.
    pub tokens: BTreeMap<Token, Caller>,
    /// Running model call, with its steps.
    pub model: Option<(u32, VecDeque<(u64, Command)>)>,
    /// Running tools, by item.
    pub tools: BTreeMap<ItemId, ToolRun>,
    /// Time of the next scheduled step.
    pub wake: Option<u64>,
}

/// A subscriber of a thread.
pub struct SimSubscriber {
    /// Connection of the client.
    pub link: Link,
    /// Reader of the journal, while it is not live.
    pub reader: Option<Box<CatchUpReader>>,
}

/// A client that waits for a response.
pub struct Caller {
    /// Index of the client.
    pub client: usize,
    /// Connection of the client.
    pub link: Link,
    /// Request of the client.
    pub request: CallerRequest,
}

/// Request of a caller.
#[derive(Debug)]
pub enum CallerRequest {
    /// A subscription to the thread.
    Subscribe(Option<Seq>),
    /// Any other request, with its number.
    Request(u64, ClientRequest),
}

/// A tool that is running on a node.
pub struct ToolRun {
    /// Remaining steps of the tool.
    pub steps: VecDeque<(u64, Command)>,
    /// Content of its item.
    pub body: ItemBody,
    /// Whether it waits for an answer.
    pub waits: bool,
    /// Number of its plan of steps.
    pub plan: u32,
}

/// An event of the simulated world.
pub enum Next {
    /// A planned fault takes effect.
    Fault(PlannedFault),
    /// A node starts again.
    Up(usize),
    /// A paused node continues.
    Resume(usize, u64),
    /// All faults end for good.
    Heal,
    /// Checks whether everything has ended.
    CheckDone,
    /// An event at a node, in one of its incarnations.
    Node(usize, u64, AtNode),
    /// An append arrives at the store.
    Arrive(Box<Arrival>),
    /// A statement arrives at the database.
    Query(Box<QueryArrival>),
    /// The former primary, of this number of changes, ends.
    EndFormer(u64),
    /// A read of the head arrives at the store.
    AskHead(usize, usize, u64),
    /// A snapshot arrives at the store.
    SaveBase(usize, Box<Base>),
    /// A thread is removed.
    Remove(usize),
    /// A client performs a step.
    Step(usize, usize),
    /// A message arrives at a client.
    ToClient(usize, usize, Link, ToClient),
}

/// An append under way.
pub struct Arrival {
    /// Index of the sending node.
    pub node: usize,
    /// Incarnation of that node.
    pub incarnation: u64,
    /// Opening of the thread that sent it.
    pub opening: u64,
    /// Append that was sent.
    pub append: Append,
    /// Whether the response arrives.
    pub answers: bool,
}

/// An event at a node.
pub enum AtNode {
    /// A lease was granted.
    Granted(usize, Epoch),
    /// A thread has been read.
    Read(usize, Epoch),
    /// A thread was taken after it had been folded up to a record. Has the head.
    Taken(usize, Epoch, Seq, Result<Seq, QueryFailure>),
    /// A response of the database to a statement, or a timer.
    Answered(u64, Result<Response, QueryFailure>),
    /// A lease is to be renewed.
    Renew(usize, u64),
    /// A thread's writer takes its next steps.
    Drive(usize, u64),
    /// The result of an append arrived.
    Answer(usize, u64, Result<Seq, AppendError>),
    /// The head was read.
    Head(usize, u64, Option<Seq>),
    /// The model takes its next step.
    Model(usize, u64, u32),
    /// A tool takes its next step.
    Tool(usize, u64, ItemId, u32),
    /// A turn begins without a client.
    Begin(usize, u64),
    /// A report of work arrives late.
    Late(usize, u64, Command),
    /// A subscriber reads on from the journal.
    CatchUp(usize, u64, usize, Link),
    /// A message of a client arrived.
    Message(usize, usize, Link, ToNode),
}
