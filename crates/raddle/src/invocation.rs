//! The command line of this process. Under the name `codex` the program takes the role of Codex:
//! its version is that of the contract, which clients check before they start a server.

use std::ffi::OsStr;
use std::path::Path;

use clap::{CommandFactory, FromArgMatches};
use raddle_server::CONTRACT_VERSION;

use crate::cli::Cli;
use crate::shim;

/// The name that Codex prints before its version.
const CODEX_NAME: &str = "codex-cli";

/// Parses the arguments. Prints help, a version or an error, and exits, if they ask for that.
pub(crate) fn parse() -> Cli {
    let mut command = Cli::command();
    if std::env::args_os().next().is_some_and(|it| is_codex(&it)) {
        command = command.display_name(CODEX_NAME).version(CONTRACT_VERSION);
    }
    let matches = command.get_matches();
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

fn is_codex(program: &OsStr) -> bool {
    Path::new(program).file_name() == Some(OsStr::new(shim::NAME))
}

/// Warns about the features that the arguments switch: Raddle has none of Codex's.
pub(crate) fn warn_of_features(cli: &Cli) {
    for feature in cli.enable.iter().chain(&cli.disable) {
        tracing::warn!(
            feature = feature.as_str(),
            "--enable and --disable have no effect: Raddle has no such feature to switch"
        );
    }
}
