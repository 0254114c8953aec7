//! The command line.

mod config;
mod daemon;
mod exec;
mod init;
mod judge;
mod model;
mod sandbox;
mod shell;
mod thread;

pub(crate) use config::{ConfigCommand, ConfigGet, ConfigList};
pub(crate) use daemon::{Daemon, DaemonCommand, DaemonStart, DaemonStatus, DaemonStop};
pub(crate) use exec::{Color, Exec, ExecCommand, ExecOptions, ExecSandbox, Unattended};
pub(crate) use init::{Init, InitApproval};
pub(crate) use judge::{Judge, JudgeApproval};
pub(crate) use model::{ModelCommand, ModelList};
pub(crate) use sandbox::{Doctor, Sandbox};
pub(crate) use shell::{Completions, Man};
pub(crate) use thread::{
    ThreadCommand, ThreadDelete, ThreadExport, ThreadImport, ThreadList, ThreadShow, ThreadVerify,
};

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use raddle_rpc::ListenAddress;
use raddle_server::Override;

/// Hosts coding agents behind JSON-RPC.
#[derive(Debug, Parser)]
#[command(
    name = "raddle",
    version,
    propagate_version = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    /// Set a configuration value, like model=NAME or a.b=3
    #[arg(short = 'c', long = "config", value_name = "KEY=VALUE")]
    pub(crate) config: Vec<Override>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

// What can be said of the configuration after a sub-command too. A doc comment would be the help of each.
#[derive(Debug, Args)]
pub(crate) struct SettingArgs {
    /// Set a configuration value, here or before the command; the last one counts
    #[arg(short = 'c', long = "config", value_name = "KEY=VALUE")]
    pub(crate) config: Vec<Override>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the agent once, for scripts and CI: a prompt in, the answer out
    ///
    /// The answer goes to stdout, and what happens on the way to stderr. Without a terminal nobody is asked: what
    /// would need a yes is denied, and the run goes on. stdin is read only if the prompt is -, or with --json and
    /// no prompt.
    ///
    /// Exit status: 0 the turn completed; 1 it failed, or could not be run; 2 the arguments cannot be meant; 3 the
    /// answer does not fit --output-schema; 4 a --budget was reached; 130 and 143 ended by SIGINT or SIGTERM.
    /// docs/exec.md has the JSON lines, and examples for CI.
    Exec(Box<Exec>),
    /// Serve the protocol to editors, apps and other clients
    AppServer(AppServer),
    /// Serve in the background, once per home: start, stop, status
    ///
    /// Without a word it stays in the foreground, for systemd and the like. It listens on the unix socket of the
    /// home unless --listen says otherwise. docs/operating.md has more.
    Daemon(Box<Daemon>),
    /// List, show, check, copy and delete stored threads
    #[command(subcommand)]
    Thread(ThreadCommand),
    /// Run a command inside the fence
    ///
    /// By default it can read every file that you can, write the folder it starts in but for .git, .codex,
    /// .agents and .raddle, and talk to nobody. Of your environment it gets a short list of variables, without keys
    /// (`-- env NAME=VALUE COMMAND` gives it more); Raddle's own folders are hidden; and it ends with all that it started. `raddle doctor` says what holds on this machine, and docs/security.md what is not promised.
    Sandbox(Sandbox),
    /// Say what holds on this machine, and how to mend what does not
    ///
    /// Looks at the configuration, the model's provider and its key, the fence (it tries to break out, in a folder that
    /// is removed again), the rules, the stored threads, the socket, the folders and the clock. Asks nobody outside
    /// this machine unless --online says so. The exit status is 1 if something is broken.
    Doctor(Doctor),
    /// Say what the rules make of a command line, without running it
    ///
    /// Reads the rules that a server would read, prints whether the line is allowed, asked about or denied and by
    /// what, and the commands that were found in it. docs/policy.md says how rules are written.
    Judge(Judge),
    /// Serve a model that follows a script, for tests and first steps
    ///
    /// It speaks all four wires over HTTP (responses, chat, messages and gemini) and needs no key. When it is ready it
    /// prints one line: what to write as `base_url` of a model provider. Without a script it repeats what it hears,
    /// and plays what the text asks for, like `MOCK text n=100 size=8 gap_ms=10` or `MOCK 429
    /// retry_after=2`. docs/mock.md has all steps and faults.
    Mock(Mock),
    /// Write a first configuration: which model, its key, what it may do
    ///
    /// Asks on the terminal what no option says, and writes a commented config.toml, which holds no key, and beside
    /// it the schema with which editors complete it.
    Init(Init),
    /// Read and change the configuration, without a server
    #[command(subcommand)]
    Config(ConfigCommand),
    /// List the models that can be used
    #[command(subcommand)]
    Model(ModelCommand),
    /// Print what makes a shell complete `raddle`
    ///
    /// For bash: `raddle completions bash > ~/.local/share/bash-completion/completions/raddle`. For zsh, write it as
    /// `_raddle` into a folder of `$fpath`; for fish: `raddle completions fish > ~/.config/fish/completions/raddle.fish`.
    Completions(Completions),
    /// Write the manual pages
    #[command(hide = true)]
    Man(Man),
}

impl Command {
    /// Whether its log may have colours where it goes to a terminal.
    pub(crate) fn colours(&self) -> bool {
        let moves_to_a_file = matches!(self, Self::Daemon(it) if it.is_detached());
        !moves_to_a_file
    }
}

#[derive(Debug, Args)]
pub(crate) struct Mock {
    /// Where to listen; port 0 takes any that is free
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:4010")]
    pub(crate) listen: SocketAddr,

    /// A script in TOML
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,

    /// Listen also where other machines can reach it; everyone who can may read what it was asked
    #[arg(long)]
    pub(crate) insecure_any_address: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct AppServer {
    #[command(subcommand)]
    pub(crate) command: Option<AppServerCommand>,

    #[command(flatten)]
    pub(crate) serve: Serve,
}

#[derive(Debug, Subcommand)]
#[expect(
    clippy::enum_variant_names,
    reason = "they are the names of the commands"
)]
pub(crate) enum AppServerCommand {
    /// Write the protocol as JSON Schema files
    GenerateJsonSchema(Generate),
    /// Write the protocol as TypeScript types
    GenerateTs(Generate),
    /// Write the protocol's reference pages
    #[command(hide = true)]
    GenerateReference(Generate),
}

#[derive(Debug, Args)]
pub(crate) struct Generate {
    /// The folder to write to; it is made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,

    /// Also write what clients must opt into
    #[arg(long)]
    pub(crate) experimental: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Serve {
    /// Set a configuration value, here or before the command; the last one counts
    #[arg(short = 'c', long = "config", value_name = "KEY=VALUE")]
    pub(crate) config: Vec<Override>,

    /// Listen on stdio:// (the default), unix://, unix://PATH, ws://IP:PORT, or off; may be repeated
    #[arg(long, value_name = "URL")]
    pub(crate) listen: Vec<ListenAddress>,

    /// The same as --listen stdio://
    #[arg(long)]
    pub(crate) stdio: bool,

    /// What a websocket client must show: capability-token or signed-bearer-token
    #[arg(long, value_name = "MODE", hide_possible_values = true)]
    pub(crate) ws_auth: Option<WsAuth>,

    /// The file that holds the capability token, at least 16 bytes; space around it does not count
    #[arg(
        long,
        hide_short_help = true,
        value_name = "PATH",
        conflicts_with = "ws_token_sha256"
    )]
    pub(crate) ws_token_file: Option<PathBuf>,

    /// The SHA-256 of the capability token, in hex
    #[arg(long, hide_short_help = true, value_name = "HEX")]
    pub(crate) ws_token_sha256: Option<String>,

    /// The file that holds the secret of signed tokens, at least 32 bytes of any kind; every byte
    /// counts, a line end too. A token's expiry is checked when its websocket opens, not later
    #[arg(long, hide_short_help = true, value_name = "PATH")]
    pub(crate) ws_shared_secret_file: Option<PathBuf>,

    /// The issuer that signed tokens must name
    #[arg(long, hide_short_help = true, value_name = "TEXT")]
    pub(crate) ws_issuer: Option<String>,

    /// The audience that signed tokens must name
    #[arg(long, hide_short_help = true, value_name = "TEXT")]
    pub(crate) ws_audience: Option<String>,

    /// How far the clocks of signed tokens may be off
    #[arg(
        long,
        hide_short_help = true,
        value_name = "SECONDS",
        default_value_t = 30
    )]
    pub(crate) ws_max_clock_skew_seconds: u64,

    /// How far in the future a signed token may expire; 30 days unless said. One that expires later is refused
    #[arg(
        long,
        hide_short_help = true,
        value_name = "SECONDS",
        default_value_t = raddle_rpc::SignedBearer::LIFETIME_MAX.as_secs()
    )]
    pub(crate) ws_max_token_lifetime_seconds: u64,

    /// Let any local process open a websocket on a loopback address without a token
    #[arg(long)]
    pub(crate) insecure_loopback: bool,

    /// A host name, besides our own address, that websocket requests may name; may be repeated
    #[arg(long, hide_short_help = true, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,

    /// What becomes of a turn whose server died, when this one takes it over: interrupt (the default of a
    /// server on stdio alone) or continue (of all others)
    #[arg(long, value_name = "HOW", hide_possible_values = true)]
    pub(crate) recovery: Option<RecoverBy>,

    /// What its threads are said to be started by
    #[arg(long, hide = true, value_name = "SOURCE", default_value = "vscode")]
    pub(crate) session_source: SessionSource,

    /// The longest message a client may send
    #[arg(long, hide_short_help = true, value_name = "BYTES", default_value_t = 32 << 20)]
    pub(crate) max_message_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecoverBy {
    /// It ends as interrupted
    Interrupt,
    /// It goes on
    Continue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SessionSource {
    Cli,
    Vscode,
    Exec,
    AppServer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WsAuth {
    /// A secret that both sides know
    CapabilityToken,
    /// An HS256 JSON Web Token
    SignedBearerToken,
}
