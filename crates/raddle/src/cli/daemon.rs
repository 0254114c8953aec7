//! The command line of `raddle daemon`.

use clap::{Args, Subcommand};

use super::Serve;

/// Help of `--listen` for a daemon.
const LISTEN: &str =
    "Listen on unix:// (the default), unix://PATH or ws://IP:PORT; may be repeated";

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    mut_arg("listen", |it| it.help(LISTEN)),
    mut_arg("stdio", |it| it.hide(true))
)]
pub(crate) struct Daemon {
    #[command(subcommand)]
    pub(crate) command: Option<DaemonCommand>,

    #[command(flatten)]
    pub(crate) serve: Serve,
}

impl Daemon {
    /// Whether this is the process that `start` spawned.
    pub(crate) fn is_detached(&self) -> bool {
        matches!(self.command, Some(DaemonCommand::Detached(_)))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum DaemonCommand {
    /// Start it in the background, and return when it is ready
    ///
    /// A daemon that already runs is reported, and is not an error.
    Start(DaemonStart),
    /// Stop it after its work in progress, and return when it has exited
    ///
    /// Its threads stay consistent, and the next server that opens one continues it. No running
    /// daemon is not an error. The exit status is 1 if it has not exited in time.
    Stop(DaemonStop),
    /// Print whether it runs, and its addresses
    ///
    /// Exit status: 0 it runs and responds; 3 no daemon runs; 4 a daemon runs but does not serve,
    /// because it is starting, stopping or stuck.
    Status(DaemonStatus),
    /// The process that `start` spawns: reports readiness on stdout and detaches from the terminal
    #[command(hide = true)]
    Detached(DaemonStart),
}

#[derive(Debug, Args)]
#[command(mut_arg("listen", |it| it.help(LISTEN)), mut_arg("stdio", |it| it.hide(true)))]
pub(crate) struct DaemonStart {
    /// Print the result as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Timeout for it to become ready
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(..=86_400))]
    pub(crate) timeout: u64,

    #[command(flatten)]
    pub(crate) serve: Serve,
}

#[derive(Debug, Args)]
pub(crate) struct DaemonStop {
    /// Print the result as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Kill it at once; the next server that opens its threads continues from stored records
    #[arg(long)]
    pub(crate) now: bool,

    /// Timeout for it to exit
    #[arg(long, value_name = "SECONDS", default_value_t = 90, value_parser = clap::value_parser!(u64).range(..=86_400))]
    pub(crate) timeout: u64,
}

#[derive(Debug, Args)]
pub(crate) struct DaemonStatus {
    /// Print the result as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}
