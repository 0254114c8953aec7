//! The command line.

mod config;
mod daemon;
mod debug;
mod demo;
mod exec;
#[cfg(feature = "fleet")]
mod fleet;
mod hooks;
mod init;
mod judge;
mod login;
mod mcp;
mod mcp_server;
mod model;
mod plugin;
mod sandbox;
mod shell;
mod shim;
mod thread;
mod undo;

pub(crate) use config::{ConfigCommand, ConfigGet, ConfigList};
pub(crate) use daemon::{Daemon, DaemonCommand, DaemonStart, DaemonStatus, DaemonStop};
pub(crate) use debug::{DebugCommand, DebugModels};
pub(crate) use demo::Demo;
pub(crate) use exec::{Color, Exec, ExecCommand, ExecSandbox, ExecWorkspace, Unattended};
#[cfg(feature = "fleet")]
pub(crate) use fleet::{FleetChange, FleetCommand, FleetReport};
pub(crate) use hooks::{HooksCommand, HooksList, HooksTrust};
pub(crate) use init::{Init, InitApproval};
pub(crate) use judge::{Judge, JudgeApproval};
pub(crate) use login::{Login, Logout};
pub(crate) use mcp::{
    McpAdd, McpCommand, McpGet, McpList, McpLogin, McpLogout, McpRemove, McpTest,
};
pub(crate) use mcp_server::McpServer;
pub(crate) use model::{ModelCommand, ModelList};
pub(crate) use plugin::{
    PluginAdd, PluginCommand, PluginLanguage, PluginList, PluginLogs, PluginNew, PluginRevoke,
    PluginTest,
};
pub(crate) use sandbox::{Doctor, Sandbox};
pub(crate) use shell::{Completions, Man};
pub(crate) use shim::{ShimCommand, ShimInstall};
pub(crate) use thread::{
    ThreadCommand, ThreadDelete, ThreadExport, ThreadImport, ThreadList, ThreadMove, ThreadShow,
    ThreadUnarchive, ThreadVerify,
};
pub(crate) use undo::{Apply, Diff, Gc, Undo};

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use raddle_config::Override;
use raddle_rpc::ListenAddress;

/// Hosts coding agents behind JSON-RPC.
#[derive(Debug, Parser)]
#[command(
    name = "raddle",
    version,
    propagate_version = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,

    #[command(subcommand)]
    pub(crate) command: Command,
}

// Options before every command. Not a doc comment: clap would make it the help of the program.
#[derive(Debug, Args)]
pub(crate) struct GlobalArgs {
    /// Set a configuration value, such as model=NAME
    #[arg(short = 'c', long = "config", value_name = "KEY=VALUE")]
    pub(crate) config: Vec<Override>,

    /// Accepted for clients of Codex, without effect
    #[arg(long, global = true, hide = true, value_name = "FEATURE")]
    pub(crate) enable: Vec<String>,

    /// Accepted for clients of Codex, without effect
    #[arg(long, global = true, hide = true, value_name = "FEATURE")]
    pub(crate) disable: Vec<String>,
}

// Configuration options of subcommands. Not a doc comment: clap would make it the help of each one.
#[derive(Debug, Args)]
pub(crate) struct SettingArgs {
    /// Set a configuration value, here or before the command; the last one wins
    #[arg(short = 'c', long = "config", value_name = "KEY=VALUE")]
    pub(crate) config: Vec<Override>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one prompt and print the answer, for scripts and CI
    ///
    /// Prints the answer to stdout and progress to stderr. Without a terminal, requests that need
    /// approval are denied and the run continues. Reads stdin only if the prompt is -, or with
    /// --json and no prompt.
    ///
    /// Exit status: 0 the turn completed; 1 it failed, or could not be run; 2 invalid arguments; 3
    /// the answer does not match --output-schema; 4 a --budget was reached; 130 and 143 ended by
    /// SIGINT or SIGTERM. docs/exec.md describes the JSON lines and has examples for CI.
    Exec(Box<Exec>),
    /// Serve the protocol to editors, apps and other clients
    AppServer(AppServer),
    /// Serve in the background, once per home: start, stop, status
    ///
    /// Without a subcommand it runs in the foreground, for service managers such as systemd. It
    /// listens on the Unix socket of the home unless --listen is given. See docs/operating.md.
    Daemon(Box<Daemon>),
    /// List, show, check, copy, move, restore and delete stored threads
    #[command(subcommand)]
    Thread(ThreadCommand),
    /// Print the file changes of a turn as a diff
    ///
    /// Prints a unified diff of the last turn that changed files. On a terminal it has colours, and
    /// characters that could control the terminal are escaped; elsewhere `git apply -R` can read
    /// it. The exit status is 1 if there is no such turn. docs/diffs.md describes the checkpoints.
    Diff(Diff),
    /// Restore the files that the last turn changed
    ///
    /// Lists the files and asks before it changes them. A file that changed since is a conflict and
    /// stays as it is. The conversation does not change. A repeated undo goes back one more turn.
    /// Works beside a running server, which stops a running turn of the thread first.
    ///
    /// Exit status: 0 restored; 1 nothing to restore, a conflict, not confirmed, or a failure; 2
    /// invalid arguments. See docs/diffs.md.
    Undo(Undo),
    /// Apply the changes of a thread that works in a copy
    ///
    /// `raddle exec --workspace copy` works in a copy of the folder. This command lists what changed
    /// there, asks, and applies it to the folder, all files or none. Answer `h` to choose hunks. A file
    /// that changed here too is a conflict and stays as it is.
    ///
    /// Exit status: 0 applied; 1 nothing to apply, a conflict, not confirmed, or a failure; 2 invalid
    /// arguments. See docs/diffs.md.
    Apply(Apply),
    /// Remove old copies of workspace files
    ///
    /// Raddle keeps copies of the files that turns change, for `raddle diff` and `raddle undo`, and
    /// removes old ones once a day. This command removes them now, by your limits. Turns whose
    /// copies are removed cannot be restored. Copies that a running command of an agent uses stay.
    ///
    /// The exit status is 1 if copies of a workspace cannot be removed. See docs/diffs.md.
    Gc(Gc),
    /// Run a command inside the sandbox
    ///
    /// By default the command can read every file that you can and write the folder it starts in,
    /// except .git, .codex, .agents and .raddle. It has no network access. It gets a short list of
    /// your environment variables, without keys (`-- env NAME=VALUE COMMAND` passes more). Raddle's
    /// own folders are hidden, and all its processes end with it. `raddle doctor` shows what this
    /// machine enforces; docs/security.md lists the limits.
    Sandbox(Sandbox),
    /// Check this machine and print how to fix problems
    ///
    /// Checks the model's provider and its key, the sandbox (it tries to break out, in a folder that
    /// is removed again), the rules, the configuration, the stored threads, the socket, the folders
    /// and the clock. Connects to a provider on this machine, and to others only with --online. The
    /// exit status is 1 if a check fails, or if no turn can run.
    Doctor(Doctor),
    /// Show how the rules decide a command line, without running it
    ///
    /// Reads the same rules as a server. Prints whether the line is allowed, needs approval or is
    /// denied, the rule that decides, the sandbox that would contain it, and the commands found in
    /// the line. docs/policy.md describes how to write rules.
    Judge(Judge),
    /// Serve a model that follows a script, for tests and first steps
    ///
    /// Speaks all four wire formats over HTTP (responses, chat, messages and gemini) and needs no
    /// key. When ready, it prints one line: the `base_url` for a model provider. Without a script
    /// it repeats its input, and follows markers in the text, such as `MOCK text n=100 gap_ms=10`,
    /// `MOCK call name=exec_command arguments={"cmd": "ls"}` or `MOCK 429 retry_after=2`. The
    /// provider `mock` runs it inside the server. docs/mock.md lists all steps and faults.
    Mock(Mock),
    /// Show a turn, an approval and a killed server, without a key
    ///
    /// Runs a scripted model and a server in a temporary folder, with one approval and one diff.
    /// Kills the server while the approval is open, starts another one and goes on. Makes no
    /// network requests, and leaves nothing behind.
    Demo(Demo),
    /// Write a first configuration: model, key, permissions
    ///
    /// Asks on the terminal for values that no option gives. Writes a commented config.toml, which
    /// holds no key, and beside it the schema that lets editors complete it.
    Init(Init),
    /// Store the key of a model provider, or sign in with it
    ///
    /// Reads the key from the terminal without echo, else from stdin. If the provider has OAuth
    /// pages, it prints the page to open instead. Servers that run already use the result.
    /// docs/models.md describes all sources of keys.
    Login(Login),
    /// Delete the stored key or sign-in of a model provider
    Logout(Logout),
    /// Read and change the configuration, without a server
    #[command(subcommand)]
    Config(ConfigCommand),
    /// List hooks, and trust them in their current form
    #[command(subcommand)]
    Hooks(HooksCommand),
    /// Add, list, test and remove MCP servers
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Serve threads as tools of an MCP server on stdio
    ///
    /// Offers two tools to an MCP client: `codex` starts a thread and runs a task in it, and
    /// `codex-reply` continues the thread. Approvals are sent to the client as elicitations, and
    /// declined if it does not support them. Ends when stdin is closed. See docs/mcp.md.
    McpServer(McpServer),
    /// Write, test, install and list plugins in any language
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// Create, check and describe the database that stores the threads
    ///
    /// It is the one that `[store]` in the configuration names. See docs/fleet.md.
    #[cfg(feature = "fleet")]
    #[command(subcommand)]
    Fleet(FleetCommand),
    /// List the available models
    #[command(subcommand)]
    Model(ModelCommand),
    /// Tools for clients of Codex
    #[command(subcommand, hide = true)]
    Debug(DebugCommand),
    /// Take the place of `codex` for clients that start it
    #[command(subcommand)]
    Shim(ShimCommand),
    /// Print a shell completion script
    ///
    /// For bash: `raddle completions bash > ~/.local/share/bash-completion/completions/raddle`. For
    /// zsh, write it as `_raddle` into a folder of `$fpath`; for fish: `raddle completions fish >
    /// ~/.config/fish/completions/raddle.fish`.
    Completions(Completions),
    /// Write the manual pages
    Man(Man),
}

impl Command {
    /// Whether log lines may have colours on a terminal.
    pub(crate) fn colours(&self) -> bool {
        let moves_to_a_file = matches!(self, Self::Daemon(it) if it.is_detached());
        !moves_to_a_file
    }
}

#[derive(Debug, Args)]
pub(crate) struct Mock {
    /// Address to listen on; port 0 picks a free port
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:4010")]
    pub(crate) listen: SocketAddr,

    /// Script in TOML
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,

    /// Also listen on addresses that other machines can reach; any client there can read the
    /// requests
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
    /// Output folder; created if missing
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,

    /// Also write the experimental methods and types
    #[arg(long)]
    pub(crate) experimental: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Serve {
    /// Set a configuration value, here or before the command; the last one wins
    #[arg(short = 'c', long = "config", value_name = "KEY=VALUE")]
    pub(crate) config: Vec<Override>,

    /// Listen on stdio:// (the default), unix://, unix://PATH, ws://IP:PORT, or off; may be
    /// repeated. stdio:// has one message on each line; unix:// and ws:// are websockets
    #[arg(long, value_name = "URL")]
    pub(crate) listen: Vec<ListenAddress>,

    /// Same as --listen stdio://
    #[arg(long)]
    pub(crate) stdio: bool,

    /// Authentication of websocket clients: capability-token or signed-bearer-token
    #[arg(long, value_name = "MODE", hide_possible_values = true)]
    pub(crate) ws_auth: Option<WsAuth>,

    /// File with the capability token, at least 16 bytes; surrounding whitespace is ignored
    #[arg(
        long,
        hide_short_help = true,
        value_name = "PATH",
        conflicts_with = "ws_token_sha256"
    )]
    pub(crate) ws_token_file: Option<PathBuf>,

    /// SHA-256 of the capability token, in hex
    #[arg(long, hide_short_help = true, value_name = "HEX")]
    pub(crate) ws_token_sha256: Option<String>,

    /// File with the secret for signed tokens, at least 32 bytes of any kind; every byte is
    /// significant, a line end too. A token's expiry is checked only when its websocket opens
    #[arg(long, hide_short_help = true, value_name = "PATH")]
    pub(crate) ws_shared_secret_file: Option<PathBuf>,

    /// Required issuer of signed tokens
    #[arg(long, hide_short_help = true, value_name = "TEXT")]
    pub(crate) ws_issuer: Option<String>,

    /// Required audience of signed tokens
    #[arg(long, hide_short_help = true, value_name = "TEXT")]
    pub(crate) ws_audience: Option<String>,

    /// Allowed clock skew of signed tokens
    #[arg(
        long,
        hide_short_help = true,
        value_name = "SECONDS",
        default_value_t = 30
    )]
    pub(crate) ws_max_clock_skew_seconds: u64,

    /// Maximum time until a signed token expires; default 30 days. Tokens that expire later are
    /// rejected
    #[arg(
        long,
        hide_short_help = true,
        value_name = "SECONDS",
        default_value_t = raddle_rpc::SignedBearer::LIFETIME_MAX.as_secs()
    )]
    pub(crate) ws_max_token_lifetime_seconds: u64,

    /// Allow any local process to open a websocket on a loopback address without a token
    #[arg(long)]
    pub(crate) insecure_loopback: bool,

    /// Additional host name that websocket requests may use; may be repeated
    #[arg(
        long,
        hide_short_help = true,
        value_name = "NAME",
        value_parser = NonEmptyStringValueParser::new()
    )]
    pub(crate) allow_host: Vec<String>,

    /// Recovery of a turn whose server died: interrupt (the default of a server on stdio alone) or
    /// continue (the default otherwise), which also sends open approval requests again
    #[arg(long, value_name = "HOW", hide_possible_values = true)]
    pub(crate) recovery: Option<RecoverBy>,

    /// Source recorded for threads that this server starts
    #[arg(long, hide = true, value_name = "SOURCE", default_value = "vscode")]
    pub(crate) session_source: SessionSource,

    /// Maximum size of a client's message
    #[arg(
        long,
        hide_short_help = true,
        value_name = "BYTES",
        default_value_t = 32 << 20,
        value_parser = message_bytes
    )]
    pub(crate) max_message_bytes: usize,
}

/// The smallest maximum size of a message. The `initialize` of a client fits into it.
const MESSAGE_BYTES_MIN: usize = 1024;

fn message_bytes(text: &str) -> Result<usize> {
    let bytes: usize = text.parse()?;
    ensure!(
        bytes >= MESSAGE_BYTES_MIN,
        "the first message of a client would not fit; give at least {MESSAGE_BYTES_MIN}"
    );
    Ok(bytes)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RecoverBy {
    /// End the turn as interrupted
    Interrupt,
    /// Continue the turn
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
    /// A shared secret
    CapabilityToken,
    /// An HS256 JSON Web Token
    SignedBearerToken,
}
