//! What a seed stands for: sizes, chances and a plan of faults. Everything in it can be taken away
//! without changing the rest, which is how a failure is made small.

use crate::rng::Rng;

/// One run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Where it comes from.
    pub seed: u64,
    /// How many nodes there are.
    pub nodes: usize,
    /// How many clients each thread has.
    pub clients: usize,
    /// How many threads there are, forks aside.
    pub threads: usize,
    /// How many turns clients ask for, in each thread.
    pub turns: u32,
    /// How many other commands each client sends.
    pub commands: u32,
    /// When faults end, in milliseconds.
    pub heal_at: u64,
    /// What is under the threads.
    pub medium: Medium,
    /// In a hundred appends, how many lose their way or their answer.
    pub lost: u64,
    /// In a hundred leases, how many are granted too late.
    pub late: u64,
    /// In a hundred steps of a client, in how many its connection is cut.
    pub cuts: u64,
    /// Whether a thread may be forked.
    pub forks: bool,
    /// Whether a thread may be deleted.
    pub deletes: bool,
    /// Whether clients go back again and again.
    pub reverts: bool,
    /// What goes wrong and when.
    pub faults: Vec<(u64, PlannedFault)>,
}

/// What keeps the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// One file on one box: what was not synced goes with the power, over all threads.
    Local,
    /// A file for each thread, and each is synced alone.
    Apart,
    /// A replicated log: what was acknowledged stays, whatever box loses power.
    Fleet,
}

/// What can go wrong at a planned moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlannedFault {
    /// A node's process is killed.
    Kill {
        /// Which.
        node: usize,
        /// For how long it stays away.
        ms: u64,
    },
    /// A node leaves in good order.
    Shutdown {
        /// Which.
        node: usize,
        /// For how long it stays away.
        ms: u64,
    },
    /// The box loses power: every node dies, and what was not synced may be gone.
    PowerCut {
        /// For how long.
        ms: u64,
        /// In a hundred unsynced transactions, how many the disk has all the same.
        kept: u64,
        /// Whether the disk keeps more of one thread than of another, and loses bases; and how it chooses.
        torn: Option<u64>,
    },
    /// A node stands still, and later goes on as if nothing had been.
    Pause {
        /// Which.
        node: usize,
        /// For how long.
        ms: u64,
    },
    /// A node's clock jumps.
    ClockJump {
        /// Which.
        node: usize,
        /// By how many milliseconds.
        by: i64,
        /// At what moment.
        moment: Moment,
    },
    /// A thread's records can be neither read nor written.
    Unavailable {
        /// Which.
        thread: usize,
        /// For how long.
        ms: u64,
    },
    /// There is no room for a thread's records.
    Full {
        /// Which.
        thread: usize,
        /// For how long.
        ms: u64,
    },
    /// A thread's records can only be read.
    ReadOnly {
        /// Which.
        thread: usize,
        /// For how long.
        ms: u64,
    },
    /// A thread's lease is taken to have run out although its owner is well.
    LeaseLost {
        /// Which.
        thread: usize,
    },
}

/// What a fault waits for once its time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nothing.
    Now,
    /// That a thread of the node waits for a time to come.
    Waiting,
    /// That an append of the node is under way.
    Appending,
}

impl PlannedFault {
    /// Its name among the reach counters.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Kill { .. } => "fault kill",
            Self::Shutdown { .. } => "fault leave",
            Self::PowerCut { .. } => "fault power cut",
            Self::Pause { .. } => "fault pause",
            Self::ClockJump { .. } => "fault clock jump",
            Self::Unavailable { .. } => "fault unavailable",
            Self::Full { .. } => "fault full",
            Self::ReadOnly { .. } => "fault read-only",
            Self::LeaseLost { .. } => "fault lease lost",
        }
    }
}

impl Scenario {
    /// What a seed stands for.
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed, 1);
        let nodes = 1 + rng.index(3);
        let threads = 1 + usize::from(rng.percent(40));
        let heal_at = rng.range(6_000, 40_000);
        let mut scenario = Self {
            seed,
            nodes,
            clients: 1 + rng.index(3),
            threads,
            turns: 1 + u32::try_from(rng.below(5)).unwrap_or(0),
            commands: u32::try_from(rng.below(14)).unwrap_or(0),
            heal_at,
            medium: match rng.below(100) {
                0..=14 => Medium::Fleet,
                15..=34 => Medium::Apart,
                _ => Medium::Local,
            },
            lost: [0, 0, 1, 3, 8][rng.index(5)],
            late: [0, 5, 25, 60][rng.index(4)],
            cuts: [0, 1, 3, 8][rng.index(4)],
            forks: rng.percent(25),
            deletes: rng.percent(15),
            reverts: rng.percent(6),
            faults: Vec::new(),
        };
        if scenario.reverts {
            scenario.turns += 6;
            scenario.commands += 20;
        }
        let count = match rng.below(10) {
            0 => 0,
            1..=6 => rng.range(1, 5),
            _ => rng.range(4, 12),
        };
        for _ in 0..count {
            let at = rng.range(50, heal_at);
            scenario.faults.push((at, fault(&mut rng, nodes, threads)));
        }
        // Now and then one owner after the other dies, so that a turn loses too many.
        if rng.percent(12) {
            let (from, gap) = (rng.range(500, heal_at / 2), rng.range(400, 1_500));
            for death in 0..4 {
                for node in 0..nodes {
                    let at = from + death * gap;
                    scenario
                        .faults
                        .push((at, PlannedFault::Kill { node, ms: 50 }));
                }
            }
        }
        scenario.faults.sort_by_key(|(at, _)| *at);
        scenario
    }

    /// Smaller ones, from the boldest to the most careful cut.
    pub fn smaller(&self) -> Vec<Self> {
        let mut all = Vec::new();
        let mut with = |change: &dyn Fn(&mut Self)| {
            let mut smaller = self.clone();
            change(&mut smaller);
            all.push(smaller);
        };
        if self.threads > 1 {
            with(&|it| it.threads = 1);
        }
        if self.faults.len() > 1 {
            with(&|it| it.faults.clear());
            with(&|it| it.faults.truncate(it.faults.len() / 2));
        }
        if self.clients > 1 {
            with(&|it| it.clients -= 1);
        }
        if self.commands > 0 {
            with(&|it| it.commands = 0);
            with(&|it| it.commands /= 2);
        }
        if self.turns > 1 {
            with(&|it| it.turns = 1);
            with(&|it| it.turns -= 1);
        }
        if self.forks {
            with(&|it| it.forks = false);
        }
        if self.deletes {
            with(&|it| it.deletes = false);
        }
        if self.reverts {
            with(&|it| it.reverts = false);
        }
        if self.lost > 0 {
            with(&|it| it.lost = 0);
        }
        if self.late > 0 {
            with(&|it| it.late = 0);
        }
        if self.cuts > 0 {
            with(&|it| it.cuts = 0);
        }
        for index in 0..self.faults.len() {
            with(&|it| {
                it.faults.remove(index);
            });
        }
        all
    }
}

fn fault(rng: &mut Rng, nodes: usize, threads: usize) -> PlannedFault {
    let node = rng.index(nodes);
    let thread = rng.index(threads);
    match rng.below(23) {
        0..=4 => PlannedFault::Kill {
            node,
            ms: rng.range(10, 3_000),
        },
        5 => PlannedFault::Shutdown {
            node,
            ms: rng.range(10, 2_000),
        },
        6..=8 | 21..=22 => PlannedFault::PowerCut {
            ms: rng.range(10, 1_000),
            kept: rng.below(101),
            torn: rng.percent(50).then(|| rng.bits()),
        },
        9..=11 => PlannedFault::Pause {
            node,
            ms: rng.range(500, 8_000),
        },
        12 | 20 => {
            let hours = i64::try_from(rng.below(25)).unwrap_or(0) - 18;
            PlannedFault::ClockJump {
                node,
                by: hours * 3_600_000 + 1_234,
                moment: [
                    Moment::Now,
                    Moment::Waiting,
                    Moment::Waiting,
                    Moment::Waiting,
                    Moment::Appending,
                ][rng.index(5)],
            }
        }
        13..=14 => PlannedFault::Unavailable {
            thread,
            ms: rng.range(50, 4_000),
        },
        15 => PlannedFault::Full {
            thread,
            ms: rng.range(50, 1_500),
        },
        16 => PlannedFault::ReadOnly {
            thread,
            ms: rng.range(50, 1_500),
        },
        _ => PlannedFault::LeaseLost { thread },
    }
}
