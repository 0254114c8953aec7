//! The command line of this process. Under the name `codex` the program takes the role of Codex:
//! its version is that of the contract, which clients check before they start a server.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use raddle_server::CONTRACT_VERSION;

use crate::cli::{AppServer, Cli, Command, GlobalArgs};
use crate::shim;

/// The command that serves clients.
const SERVER: &str = "app-server";

/// The name that Codex prints before its version.
const CODEX_NAME: &str = "codex-cli";

/// Parses the arguments. Prints help, a version or an error, and exits, if they ask for that.
pub(crate) fn parse() -> Cli {
    let args: Vec<OsString> = std::env::args_os().collect();
    if let Some(cli) = parse_server(&args) {
        return cli;
    }
    let mut command = Cli::command();
    if args.first().is_some_and(|it| is_codex(it)) {
        command = command.display_name(CODEX_NAME).version(CONTRACT_VERSION);
    }
    let matches = command.get_matches_from(args);
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Parses the command line of a server, because clients wait for its start, and the tree of all
/// commands takes long to build. Returns `None` for other commands, and for help, versions and
/// errors.
fn parse_server(args: &[OsString]) -> Option<Cli> {
    if !args.iter().any(|it| it == SERVER) {
        return None;
    }
    let ServerCli { global, command } = ServerCli::try_parse_from(args).ok()?;
    let ServerCommand::AppServer(server) = command;
    let command = Command::AppServer(server);
    Some(Cli { global, command })
}

/// The part of the command line that a server needs.
#[derive(Parser)]
struct ServerCli {
    #[command(flatten)]
    global: GlobalArgs,

    #[command(subcommand)]
    command: ServerCommand,
}

#[derive(Subcommand)]
enum ServerCommand {
    AppServer(AppServer),
}

fn is_codex(program: &OsStr) -> bool {
    Path::new(program).file_name() == Some(OsStr::new(shim::NAME))
}

/// Warns about the features that the arguments switch: Raddle has none of Codex's.
pub(crate) fn warn_of_features(args: &GlobalArgs) {
    for feature in args.enable.iter().chain(&args.disable) {
        tracing::warn!(
            feature = feature.as_str(),
            "--enable and --disable have no effect: Raddle has no such feature to switch"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Command lines of a server, and others that contain its name.
    const LINES: [(&str, bool); 12] = [
        ("raddle app-server", true),
        (
            "codex -c model=x app-server -c model=y --listen unix://",
            true,
        ),
        ("raddle --enable a app-server --disable b --enable c", true),
        (
            "raddle app-server --listen stdio:// --listen ws://127.0.0.1:1",
            true,
        ),
        ("raddle app-server generate-ts --out x --experimental", true),
        ("raddle exec app-server", false),
        ("raddle --enable exec app-server", true),
        ("raddle help app-server", false),
        ("raddle app-server --help", false),
        ("raddle app-server -V", false),
        ("raddle app-server --lisen x", false),
        ("raddle doctor", false),
    ];

    #[test]
    fn the_command_line_of_a_server_is_parsed_like_all_others() {
        for (line, is_server) in LINES {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let server = parse_server(&args);
            assert_eq!(server.is_some(), is_server, "{line}");
            if let Some(server) = server {
                let whole = Cli::try_parse_from(&args).expect(line);
                assert_eq!(format!("{server:?}"), format!("{whole:?}"), "{line}");
            }
        }
    }
}
