//! A simulated thread: a list of numbers chooses the events, the real writer decides their effect.

use raddle_core::ports::AppendError;
use raddle_core::*;

use crate::fixtures;

/// Steps after which a writer is considered to work for ever.
const STEPS_MAX: usize = 1000;

/// A simulated thread, its journal and its announcements.
pub struct SimulatedThread {
    pub owner: ThreadWriter,
    pub journal: Vec<Record>,
    pub announcements: Vec<Announcement>,
    pub replies: Vec<(Token, Result<CommandOutcome, Refusal>)>,
    pub now: Timestamp,
    pub bases: Vec<Base>,
    pub starts: Vec<Effect>,
    pub stops: Vec<Effect>,
    pub asks: Vec<RequestNumber>,
    pub deliveries: Vec<(ItemId, RequestNumber, Resolution)>,
    tokens: u64,
    ids: u64,
}

impl SimulatedThread {
    pub fn new() -> Self {
        let now = Timestamp(1_000_000);
        let owner = ThreadWriter::start(fixtures::thread_started(), node(1), now);
        let mut sim = Self {
            owner,
            journal: Vec::new(),
            announcements: Vec::new(),
            replies: Vec::new(),
            now,
            bases: Vec::new(),
            starts: Vec::new(),
            stops: Vec::new(),
            asks: Vec::new(),
            deliveries: Vec::new(),
            tokens: 0,
            ids: 0,
        };
        sim.settle();
        sim
    }

    /// Runs a whole simulation.
    pub fn of(choices: &[u16]) -> Self {
        let mut sim = Self::new();
        for choice in choices {
            sim.choose(*choice);
        }
        sim
    }

    /// Lets the writer do all it can do.
    pub fn settle(&mut self) {
        for _ in 0..STEPS_MAX {
            match self.owner.step(self.now) {
                Step::Append { after, records, .. } => {
                    let head = self.journal.last().map_or(Seq::ZERO, |record| record.seq);
                    let result = if head == after {
                        self.journal.extend(records);
                        Ok(self.journal.last().map_or(Seq::ZERO, |record| record.seq))
                    } else {
                        Err(AppendError::Conflict)
                    };
                    let actions = self.owner.appended(result);
                    self.perform(actions);
                }
                Step::Do(actions) => self.perform(actions),
                Step::ReadHead | Step::Wait(_) | Step::Ended(_) => return,
            }
        }
        panic!("the owner does not come to rest");
    }

    fn perform(&mut self, actions: Vec<WriterAction>) {
        for action in actions {
            match action {
                WriterAction::Reply(token, result) => self.replies.push((token, result)),
                WriterAction::Announce(announcement) => self.announcements.push(announcement),
                WriterAction::Start(effect) => self.starts.push(effect),
                WriterAction::SaveBase(base) => self.bases.push(*base),
                WriterAction::Stop(effect) => self.stops.push(effect),
                WriterAction::Ask(request) => self.asks.push(request),
                WriterAction::Deliver(item, request, resolution) => {
                    self.deliveries.push((item, request, resolution));
                }
                WriterAction::Subscribed(_) => {}
            }
        }
    }

    pub fn send_command(&mut self, command: Command) -> Token {
        self.tokens += 1;
        let token = Token(self.tokens);
        self.owner
            .offer(Envelope::command(token, command))
            .expect("capacity in the inbox");
        token
    }

    /// Runs a line of a rule file, each step in a round of its own.
    pub fn run_line(&mut self, line: &str) {
        for step in line.split(" · ") {
            let command = fixtures::command(step, self.owner.thread(), self.now);
            self.report(command);
            self.settle();
        }
    }

    pub fn report(&mut self, command: Command) {
        self.owner
            .offer(Envelope::report(command))
            .expect("capacity in the inbox");
    }

    /// Replaces the owner by one that folds the journal, as after a crash.
    pub fn crash(&mut self) {
        let mut thread = Thread::new();
        for record in &self.journal {
            thread.apply(record);
        }
        let epoch = thread.epoch().0 + 1;
        let head = thread.head();
        self.owner = ThreadWriter::open(thread, head, node(epoch), self.now);
    }

    fn new_id(&mut self, letter: char) -> String {
        self.ids += 1;
        format!("{letter}{}", self.ids)
    }

    /// Performs one event. The choice may be impossible, and is then refused.
    fn choose(&mut self, choice: u16) {
        let (kind, detail) = (choice % 32, u64::from(choice / 32));
        let thread = self.owner.thread();
        let open: Vec<(ItemId, bool)> = thread
            .turn()
            .map(|turn| {
                let items = turn.items.iter();
                items.map(|it| (it.item.id.clone(), it.is_tool())).collect()
            })
            .unwrap_or_default();
        let some_item = |tool: bool| {
            let items: Vec<_> = open.iter().filter(|it| it.1 == tool).collect();
            let at = usize::try_from(detail).unwrap_or(0) % items.len().max(1);
            items
                .get(at)
                .map_or("none".to_owned(), |it| it.0.to_string())
        };
        let line = match kind {
            0 | 1 => format!(
                "start {} \"hello {detail}\" asking \"rules {}\" in \"day {}\"",
                self.new_id('t'),
                detail % 2,
                detail % 5
            ),
            2 => format!("steer {} \"more\"", turn_id(thread)),
            3 => format!("interrupt {}", turn_id(thread)),
            4..=6 => format!("message {}", self.new_id('i')),
            7..=10 => format!(
                "text {} \"{}\"",
                some_item(false),
                "ä".repeat(1 + detail as usize % 40)
            ),
            11 | 12 => format!("said {} \"done {detail}\"", some_item(false)),
            13 => format!("call {} shell \"ls\" run", self.new_id('i')),
            14 => format!("call {} shell-alone \"rm\" ask", self.new_id('i')),
            15 => format!(
                "call {} client \"look\" ask until {}s",
                self.new_id('i'),
                detail % 90
            ),
            16 => format!("call {} questions \"q\" ask", self.new_id('i')),
            17 => format!("call {} patch \"p\" deny \"no\"", self.new_id('i')),
            18..=20 => format!("done {}", detail % 300),
            21 => format!("broke {}s", detail % 20),
            22 => "failed \"x\"".to_owned(),
            23 => format!("ended {} ok \"fine\"", some_item(true)),
            24 => format!("printed {} \"out\"", some_item(true)),
            25 => {
                let answers = [
                    "accept",
                    "decline",
                    "cancel",
                    "tool \"x\"",
                    "answers \"y\"",
                    "failed",
                ];
                let answer = answers[detail as usize % answers.len()];
                let request = thread.requests().next().map_or(0, |(number, _)| number.0);
                format!("answer {request} ann {answer}")
            }
            26 => {
                self.now = self.now.plus_ms(detail as i64 * 1000);
                String::new()
            }
            27 => {
                self.settle();
                self.crash();
                String::new()
            }
            28 => match detail % 12 {
                8 => format!("goal to \"g\" within {}", 1 + detail % 300),
                9 => "goal to \"g\" is paused".to_owned(),
                10 => format!("queue {} \"q\"", self.new_id('q')),
                11 => format!("goes {}", self.new_id('t')),
                6 => format!("inject user \"u{detail}\" call \"x\" output \"x\""),
                7 => format!("note sha \"s{}\"", detail % 3),
                0 => "rename \"n\"".to_owned(),
                1 => "archive".to_owned(),
                2 => "unarchive".to_owned(),
                3 => format!("set compactAbove {}", detail % 400),
                4 => "warn \"w\"".to_owned(),
                _ => "set recovery".to_owned(),
            },
            29 => format!("compact {}", self.new_id('t')),
            30 => format!("compacted {} \"so far\"", self.new_id('c')),
            _ => format!("asks {}", some_item(true)),
        };
        if !line.is_empty() {
            let command = fixtures::command(&line, self.owner.thread(), self.now);
            if matches!(kind, 0..=3 | 25 | 28 | 29) {
                self.send_command(command);
            } else {
                self.report(command);
            }
        }
        // Some events share one round.
        if detail % 3 != 0 {
            self.settle();
        }
    }
}

fn turn_id(thread: &Thread) -> String {
    thread
        .turn()
        .map_or("none".to_owned(), |turn| turn.id.to_string())
}

pub fn node(epoch: u64) -> WriterNode {
    WriterNode {
        name: format!("n{epoch}"),
        epoch: Epoch(epoch),
        recovery: Recovery::Continue,
    }
}

/// Folds records into a thread.
pub fn fold<'a>(records: impl IntoIterator<Item = &'a Record>) -> Thread {
    let mut thread = Thread::new();
    for record in records {
        thread.apply(record);
    }
    thread
}
