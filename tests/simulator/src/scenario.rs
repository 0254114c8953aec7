//! Scenarios: sizes, probabilities and a plan of faults, all from a seed. Every part can be removed
//! without changing the rest, which is how a failure is shrunk.

use support::Rng;

/// First seed of which a third are of a fleet. Seeds below keep the runs that they were recorded with.
pub const FLEET_SEEDS: u64 = 1_000;

/// Parameters of one run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Seed that it was made from.
    pub seed: u64,
    /// Number of simulated nodes.
    pub nodes: usize,
    /// Number of clients of each thread.
    pub clients: usize,
    /// Number of threads, without forks.
    pub threads: usize,
    /// Number of turns that clients start, in each thread.
    pub turns: u32,
    /// Number of other commands of each client.
    pub commands: u32,
    /// Time at which faults end, in milliseconds.
    pub heal_at: u64,
    /// Storage of the threads.
    pub medium: Medium,
    /// Percentage of appends that are lost, or whose response is.
    pub lost: u64,
    /// Percentage of leases that are granted too late.
    pub late: u64,
    /// Percentage of a client's steps in which its connection is cut.
    pub cuts: u64,
    /// Whether a thread may be forked.
    pub forks: bool,
    /// Whether a thread may be deleted.
    pub deletes: bool,
    /// Whether clients revert again and again.
    pub reverts: bool,
    /// Faults and their times.
    pub faults: Vec<(u64, PlannedFault)>,
}

/// Storage of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// One file on one machine: a loss of power drops what was not synced, over all threads.
    Local,
    /// One file for each thread, synced separately.
    Apart,
    /// A replicated log: acknowledged records stay, whichever machine loses power.
    Replicated,
    /// A database with a standby, and on each node a log of its own for deltas.
    Fleet,
}

/// A fault at a planned time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlannedFault {
    /// A node's process is killed.
    Kill {
        /// Index of the node.
        node: usize,
        /// Downtime of the node in milliseconds.
        ms: u64,
    },
    /// A node shuts down cleanly.
    Shutdown {
        /// Index of the node.
        node: usize,
        /// Downtime of the node in milliseconds.
        ms: u64,
    },
    /// The machine loses power: every node dies, and what was not synced may be lost.
    PowerCut {
        /// Downtime of the node in milliseconds.
        ms: u64,
        /// Percentage of unsynced transactions that the disk keeps nevertheless.
        kept_percent: u64,
        /// Seed of a torn loss, in which the disk keeps more of one thread than of another, and
        /// loses bases.
        torn: Option<u64>,
    },
    /// A node is paused, and later continues as if nothing had happened.
    Pause {
        /// Index of the node.
        node: usize,
        /// Length of the pause in milliseconds.
        ms: u64,
    },
    /// A node's clock jumps.
    ClockJump {
        /// Index of the node.
        node: usize,
        /// Size of the jump in milliseconds.
        by: i64,
        /// Condition that the jump waits for.
        moment: Moment,
    },
    /// The records of a thread can be neither read nor written.
    Unavailable {
        /// Index of the thread.
        thread: usize,
        /// Duration of the fault in milliseconds.
        ms: u64,
    },
    /// The store has no space for a thread's records.
    Full {
        /// Index of the thread.
        thread: usize,
        /// Duration of the fault in milliseconds.
        ms: u64,
    },
    /// A thread's records can only be read.
    ReadOnly {
        /// Index of the thread.
        thread: usize,
        /// Duration of the fault in milliseconds.
        ms: u64,
    },
    /// The standby becomes the primary of the database.
    FailOver {
        /// Time without a primary in milliseconds.
        ms: u64,
        /// Percentage of the recent commits without a standby that reach it nevertheless.
        kept_percent: u64,
        /// Nodes, as bits, that still reach the former primary, which does not know that it is one.
        former_of: u64,
        /// Time for which they reach it, in milliseconds.
        former_ms: u64,
        /// Condition that the fault waits for.
        moment: FailOverMoment,
    },
    /// A node's connections to the database carry nothing in one direction.
    Partition {
        /// Index of the node.
        node: usize,
        /// Duration of the fault in milliseconds.
        ms: u64,
        /// Whether statements arrive, and the responses do not.
        answers_lost: bool,
    },
    /// A thread's lease counts as expired although its owner is alive.
    LeaseLost {
        /// Index of the thread.
        thread: usize,
    },
}

/// Condition that a fault waits for once its time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// No condition: at once.
    Now,
    /// A thread of the node waits for a time.
    Waiting,
    /// An append of the node is under way.
    Appending,
}

/// Condition that a change of the primary waits for once its time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailOverMoment {
    /// No condition: at once.
    Now,
    /// The standby may not have a batch.
    UnreplicatedBatch,
    /// A node log was just sealed.
    Sealed,
}

impl PlannedFault {
    /// Name among the coverage counters.
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
            Self::FailOver { .. } => "fault fail-over",
            Self::Partition { .. } => "fault partition",
        }
    }
}

impl Scenario {
    /// Creates the scenario of a seed.
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::for_purpose(seed, 1);
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
                0..=32 if seed >= FLEET_SEEDS => Medium::Fleet,
                33..=47 if seed >= FLEET_SEEDS => Medium::Apart,
                0..=14 if seed < FLEET_SEEDS => Medium::Replicated,
                15..=34 if seed < FLEET_SEEDS => Medium::Apart,
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
        // Sometimes one owner after the other dies, so that a turn loses too many.
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
        if scenario.medium == Medium::Fleet {
            let mut rng = Rng::for_purpose(seed, 2);
            for _ in 0..rng.below(6) {
                let at = rng.range(50, heal_at);
                scenario.faults.push((at, fleet_fault(&mut rng, nodes)));
            }
        }
        scenario.faults.sort_by_key(|(at, _)| *at);
        scenario
    }

    /// Returns smaller scenarios, from the largest to the smallest reduction.
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

fn fleet_fault(rng: &mut Rng, nodes: usize) -> PlannedFault {
    if rng.percent(35) {
        return PlannedFault::Partition {
            node: rng.index(nodes),
            ms: rng.range(100, 5_000),
            answers_lost: rng.percent(50),
        };
    }
    let has_former = rng.percent(40);
    PlannedFault::FailOver {
        ms: [0, 0, 50, 800][rng.index(4)],
        kept_percent: rng.below(101),
        former_of: if has_former { rng.below(8) } else { 0 },
        former_ms: rng.range(50, 3_000),
        moment: [
            FailOverMoment::Now,
            FailOverMoment::UnreplicatedBatch,
            FailOverMoment::UnreplicatedBatch,
            FailOverMoment::Sealed,
        ][rng.index(4)],
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
            kept_percent: rng.below(101),
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
