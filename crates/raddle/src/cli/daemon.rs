//! The command line of `raddle daemon`.

use clap::{Args, Subcommand};

use super::Serve;

/// What `--listen` means to a daemon.
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
    /// Whether this is the process that `start` made.
    pub(crate) fn is_detached(&self) -> bool {
        matches!(self.command, Some(DaemonCommand::Detached(_)))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum DaemonCommand {
    /// Start it in the background, and return when it is ready
    ///
    /// If one runs already this says so, and is no failure.
    Start(DaemonStart),
    /// Let it finish what it does, and return when it has ended
    ///
    /// Its threads are left in good order: whoever opens one goes on with it. If none runs this is no failure. The
    /// exit status is 1 if it has not ended in time.
    Stop(DaemonStop),
    /// Say whether it runs, and where
    ///
    /// The exit status is 0 if it runs and answers, 3 if none runs, and 4 if one runs that does not serve: it starts,
    /// it ends, or it is stuck.
    Status(DaemonStatus),
    /// What `start` makes: says on stdout that it is ready, and leaves the terminal
    #[command(hide = true)]
    Detached(DaemonStart),
}

#[derive(Debug, Args)]
#[command(mut_arg("listen", |it| it.help(LISTEN)), mut_arg("stdio", |it| it.hide(true)))]
pub(crate) struct DaemonStart {
    /// Print what was found as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// How long to wait until it is ready
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(..=86_400))]
    pub(crate) timeout: u64,

    #[command(flatten)]
    pub(crate) serve: Serve,
}

#[derive(Debug, Args)]
pub(crate) struct DaemonStop {
    /// Print what was found as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Do not let it finish: whoever opens its threads takes up what was stored
    #[arg(long)]
    pub(crate) now: bool,

    /// How long to wait until it has ended
    #[arg(long, value_name = "SECONDS", default_value_t = 90, value_parser = clap::value_parser!(u64).range(..=86_400))]
    pub(crate) timeout: u64,
}

#[derive(Debug, Args)]
pub(crate) struct DaemonStatus {
    /// Print what was found as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}
