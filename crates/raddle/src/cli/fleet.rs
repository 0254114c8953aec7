//! The command line of `raddle fleet`.

use clap::{Args, Subcommand};

use super::SettingArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Create the tables in the database of the configuration
    ///
    /// Succeeds if they exist already. A server creates them too, if its role may.
    Init(FleetChange),
    /// Change the tables to the layout of this version
    ///
    /// Servers may run meanwhile. Older versions cannot use the database afterwards.
    Migrate(FleetChange),
    /// Check that the database can be used, and print how to fix problems
    ///
    /// Checks the address, the version, the tables, the privileges, the standby, the number of
    /// connections and the clock. Changes nothing. The exit status is 1 if a check fails.
    Check(FleetReport),
    /// Print version, layout, standbys, size and number of threads
    Status(FleetReport),
}

#[derive(Debug, Args)]
pub(crate) struct FleetChange {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

#[derive(Debug, Args)]
pub(crate) struct FleetReport {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}
