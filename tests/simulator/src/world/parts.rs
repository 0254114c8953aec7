//! What the world is made of.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use raddle_core::ports::AppendError;
use raddle_core::{
    Base, CatchUpReader, Command, Epoch, ItemBody, ItemId, Seq, ThreadId, ThreadWriter, Token,
};

use crate::check::Oracle;
use crate::client::{ClientRequest, Link, SimClient, ToClient, ToNode};
use crate::rng::Rng;
use crate::scenario::PlannedFault;
use crate::store::{Append, LogRow};

/// A thread and everything of its own, chance included, so that no other thread can touch it.
pub struct Lane {
    /// Its id.
    pub id: ThreadId,
    /// Its own chance.
    pub rng: Rng,
    /// What is known of it from outside.
    pub oracle: Oracle,
    /// Who should write it.
    pub lease: Lease,
    /// Its clients.
    pub clients: Vec<SimClient>,
    /// How often it was opened.
    pub openings: u64,
    /// Names given out so far.
    pub minted: u64,
    /// How often each tool was started, by anyone: the world outside survives crashes.
    pub starts: BTreeMap<ItemId, u32>,
    /// How many turns clients still ask for.
    pub turns_left: u32,
    /// What is wrong with its store, and until when.
    pub trouble: Option<(StoreFault, u64)>,
    /// Whether it was removed.
    pub gone: bool,
    /// Whether it may still be forked.
    pub forks: bool,
}

/// Who should write a thread. It decides who tries, never who may.
#[derive(Clone, Debug, Default)]
pub struct Lease {
    /// The node and which of its lives.
    pub holder: Option<(usize, u64)>,
    /// The newest epoch granted.
    pub epoch: u64,
    /// Until when.
    pub until: u64,
}

/// What is wrong with a thread's store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// Not to be reached.
    Unavailable,
    /// No room.
    Full,
    /// Not to be written.
    ReadOnly,
}

/// One process.
#[derive(Default)]
pub struct SimNode {
    /// Whether it runs.
    pub alive: bool,
    /// Which of its lives this is.
    pub life: u64,
    /// Whether it stands still.
    pub paused: bool,
    /// What came while it stood still.
    pub deferred: Vec<Next>,
    /// How far its clock is off.
    pub clock: i64,
    /// The threads it has open.
    pub live: BTreeMap<usize, OpenThread>,
    /// The threads it wants, and who waits for them.
    pub wants: BTreeMap<usize, Vec<OpenWaiter>>,
}

/// A client that waits for a thread to be opened.
pub struct OpenWaiter {
    /// Which.
    pub client: usize,
    /// On which connection.
    pub link: Link,
    /// The last number it saw.
    pub seen: Option<Seq>,
}

/// A thread that is open on a node.
pub struct OpenThread {
    /// Which opening of the thread this is.
    pub opening: u64,
    /// The reign.
    pub epoch: Epoch,
    /// The core's own task.
    pub owner: ThreadWriter,
    /// Whether an answer of the store is awaited.
    pub busy: bool,
    /// Whether the store had no room for the last append.
    pub full: bool,
    /// The log that is to be copied in front of the first append.
    pub copy: Option<Rc<Vec<Rc<LogRow>>>>,
    /// Who hears of it.
    pub subscribers: BTreeMap<usize, SimSubscriber>,
    /// Who waits for an answer.
    pub tokens: BTreeMap<Token, Caller>,
    /// The call of the model that runs.
    pub model: Option<(u32, VecDeque<(u64, Command)>)>,
    /// The tools that run.
    pub tools: BTreeMap<ItemId, ToolRun>,
    /// When it wakes.
    pub wake: Option<u64>,
}

/// A client that hears of a thread.
pub struct SimSubscriber {
    /// On which connection.
    pub link: Link,
    /// Where it stands in the journal while it does not hear live.
    pub reader: Option<Box<CatchUpReader>>,
}

/// A client that waits for an answer.
pub struct Caller {
    /// Which.
    pub client: usize,
    /// On which connection.
    pub link: Link,
    /// What it asked.
    pub request: CallerRequest,
}

/// What a caller asked.
#[derive(Debug)]
pub enum CallerRequest {
    /// To hear of the thread.
    Subscribe(Option<Seq>),
    /// Something else, by its own number.
    Request(u64, ClientRequest),
}

/// A tool that runs.
pub struct ToolRun {
    /// What it does.
    pub steps: VecDeque<(u64, Command)>,
    /// Its item.
    pub body: ItemBody,
    /// Whether it waits for an answer.
    pub waits: bool,
    /// Which plan of steps this is.
    pub plan: u32,
}

/// What comes next.
pub enum Next {
    /// Something goes wrong.
    Fault(PlannedFault),
    /// A node comes back.
    Up(usize),
    /// A node goes on.
    Resume(usize, u64),
    /// Faults are over.
    Heal,
    /// Is everything at an end?
    CheckDone,
    /// Something comes to a node in one of its lives.
    Node(usize, u64, AtNode),
    /// An append comes to the store.
    Arrive(Box<Arrival>),
    /// A question for the head comes to the store.
    AskHead(usize, usize, u64),
    /// A snapshot comes to the store.
    SaveBase(usize, Box<Base>),
    /// A thread is removed.
    Remove(usize),
    /// A client does something.
    Step(usize, usize),
    /// A message comes to a client.
    ToClient(usize, usize, Link, ToClient),
}

/// An append on its way.
pub struct Arrival {
    /// From which node,
    pub node: usize,
    /// in which of its lives,
    pub life: u64,
    /// by which opening.
    pub opening: u64,
    /// What.
    pub append: Append,
    /// Whether the answer finds its way back.
    pub answers: bool,
}

/// What comes to a node.
pub enum AtNode {
    /// A lease was granted.
    Granted(usize, Epoch),
    /// A thread has been read.
    Read(usize, Epoch),
    /// A lease is to be renewed.
    Renew(usize, u64),
    /// A thread's task looks what is to be done.
    Drive(usize, u64),
    /// An append was answered.
    Answer(usize, u64, Result<Seq, AppendError>),
    /// The head was read.
    Head(usize, u64, Option<Seq>),
    /// The model goes on.
    Model(usize, u64, u32),
    /// A tool goes on.
    Tool(usize, u64, ItemId, u32),
    /// A turn begins by itself.
    Begin(usize, u64),
    /// A report of work comes late.
    Late(usize, u64, Command),
    /// A listener is sent what it missed.
    CatchUp(usize, u64, usize, Link),
    /// A client says something.
    Message(usize, usize, Link, ToNode),
}
