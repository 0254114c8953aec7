//! Faults of a run.

use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;

use crate::checker::AllowedLosses;
use crate::proxy::Disturbance;
use crate::run::FaultRun;
use crate::server::ServerKind;

/// Time without a fault before and after one, in milliseconds.
const BEFORE: (u64, u64) = (300, 900);

/// Appends that must be acknowledged after a fault: the journal works again.
const RECOVERED: u64 = 100;

/// A fault that runs are made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fault {
    /// Threads change their nodes, and nothing fails.
    None,
    /// Nodes are killed, and others take their threads.
    NodeKilled,
    /// Nodes are stopped, others take their threads, and the nodes continue.
    NodePaused,
    /// Connections end before, while and after statements run; some statements arrive late.
    ConnectionCut,
    /// Answers of the server are delayed.
    AnswersDelayed,
    /// The only server is killed and started again.
    ServerKilled,
    /// The clocks of the server and of the nodes differ by a day, and change.
    Clock,
    /// The primary is killed.
    PrimaryKilled,
    /// The primary is stopped until another has replaced it, and continues.
    PrimaryStopped,
    /// Every member of the cluster is killed.
    MembersKilled,
    /// The leader of etcd is killed.
    EtcdKilled,
    /// The disk of the primary is full, and then that of the standby.
    DiskFull,
}

impl Fault {
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |it| it.get_name().to_owned())
    }

    pub fn server(self) -> ServerKind {
        match self {
            Self::None
            | Self::NodeKilled
            | Self::NodePaused
            | Self::ConnectionCut
            | Self::AnswersDelayed
            | Self::ServerKilled => ServerKind::Single,
            Self::Clock => ServerKind::SingleWithClock,
            Self::PrimaryKilled | Self::PrimaryStopped | Self::MembersKilled | Self::EtcdKilled => {
                ServerKind::Cluster
            }
            Self::DiskFull => ServerKind::SmallCluster,
        }
    }

    /// Losses that the fault allows. A loss of etcd's leader may demote the primary, and a full disk
    /// may end it.
    pub fn losses(self) -> AllowedLosses {
        match self {
            Self::None
            | Self::NodeKilled
            | Self::NodePaused
            | Self::ConnectionCut
            | Self::AnswersDelayed
            | Self::Clock => AllowedLosses::None,
            Self::ServerKilled
            | Self::PrimaryKilled
            | Self::PrimaryStopped
            | Self::MembersKilled
            | Self::EtcdKilled
            | Self::DiskFull => AllowedLosses::Unsynced,
        }
    }

    /// Offset of the clock of a node, in milliseconds.
    pub fn clock_offset(self, node: u64) -> i64 {
        const DAY: i64 = 24 * 60 * 60 * 1000;
        match (self, node % 3) {
            (Self::Clock, 0) => DAY,
            (Self::Clock, 1) => -DAY,
            _ => 0,
        }
    }

    /// Causes the fault while the nodes work, and repairs it.
    pub fn happen(self, run: &mut FaultRun<'_>) -> Result<()> {
        match self {
            Self::None => run.work(Duration::from_millis(2500))?,
            Self::NodeKilled => {
                for _ in 0..3 {
                    run.work_for(BEFORE)?;
                    let node = run.kill_node()?;
                    run.work_for((0, 300))?;
                    run.start_node(node)?;
                }
                run.work_for(BEFORE)?;
            }
            Self::NodePaused => {
                for _ in 0..3 {
                    run.work_for(BEFORE)?;
                    let node = run.pause_node()?;
                    run.work_for((50, 900))?;
                    run.resume_node(node)?;
                }
                run.work_for(BEFORE)?;
            }
            Self::ConnectionCut => run.disturb(Disturbance::Cuts, Duration::from_secs(3))?,
            Self::AnswersDelayed => run.disturb(Disturbance::Delays, Duration::from_secs(4))?,
            Self::ServerKilled => {
                run.work_for(BEFORE)?;
                run.script("kill-all")?;
                run.work_for((0, 300))?;
                run.script("resume")?;
                run.recover(RECOVERED)?;
            }
            Self::Clock => {
                for offset in ["+1d", "-1d", "+0"] {
                    run.work_for(BEFORE)?;
                    run.set_clock(offset)?;
                }
                run.recover(RECOVERED)?;
            }
            Self::PrimaryKilled => self.fail_over(run, "kill-leader")?,
            Self::MembersKilled => {
                run.work_for(BEFORE)?;
                run.script("kill-all")?;
                run.work_for((0, 2000))?;
                run.script("resume")?;
                run.recover(RECOVERED)?;
            }
            Self::PrimaryStopped => self.fail_over(run, "pause-leader")?,
            Self::EtcdKilled => {
                run.work_for(BEFORE)?;
                run.script("kill-etcd-leader")?;
                run.recover(RECOVERED)?;
                run.work_for((1000, 5000))?;
                run.script("resume")?;
                run.recover(RECOVERED)?;
            }
            Self::DiskFull => {
                for member in ["leader", "standby"] {
                    run.work_for(BEFORE)?;
                    run.script_with("fill", &[member])?;
                    run.work_for((3000, 6000))?;
                    run.script("free")?;
                    run.recover(RECOVERED)?;
                }
            }
        }
        Ok(())
    }

    /// The primary fails, another replaces it, and the former one returns as a standby.
    fn fail_over(self, run: &mut FaultRun<'_>, verb: &str) -> Result<()> {
        run.work_for((1000, 2500))?;
        run.script(verb)?;
        run.recover(RECOVERED)?;
        run.script("resume")?;
        run.recover(RECOVERED)
    }
}
