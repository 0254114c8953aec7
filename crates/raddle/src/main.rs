//! The binary: reads the command line and the environment, and wires the crates together.
//!
//! Below: every other crate. Above: the user or the program that starts it.

mod agent_deps;
mod app_server;
mod apply;
mod cli;
mod config;
mod daemon;
mod debug_models;
mod demo;
mod diff;
mod doctor;
mod exec;
#[cfg(feature = "fleet")]
mod fleet;
mod gc;
mod generate;
mod home;
mod hooks;
mod init;
mod invocation;
mod judge;
mod log;
mod login;
mod mcp;
mod mcp_server;
mod mock;
mod model_list;
mod plugin;
mod postgres;
mod rules;
mod runtime;
mod sandbox;
mod shell;
mod shim;
mod thread;
mod thread_server;
mod threads;
mod undo;
mod webhook;
mod welcome;

use std::process::ExitCode;

use raddle_alloc::Allocator;
use raddle_config::Override;

use crate::cli::{AppServer, AppServerCommand, Command, DebugCommand, ModelCommand, ShimCommand};

#[global_allocator]
static MEMORY: Allocator = Allocator;

fn main() -> ExitCode {
    // First of all: this process may be the sandbox of a command or its keeper, not the server.
    if let Some(code) = raddle_sandbox::take_over(std::env::args_os()) {
        return code;
    }
    // On failure SQLite keeps its own allocator.
    let _ = raddle_alloc::install_in_sqlite();
    if std::env::args_os().len() == 1 {
        return match welcome::run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let cli = invocation::parse();
    log::start(cli.command.colours());
    invocation::warn_of_features(&cli.global);
    // The command line takes precedence over the environment.
    let environment = Override::of_environment(|name| std::env::var(name).ok());
    let arguments = cli.global.config;
    let overrides: Vec<Override> = environment.into_iter().chain(arguments).collect();
    let outcome = match cli.command {
        Command::AppServer(args) => app_server(overrides, args).map(|()| ExitCode::SUCCESS),
        Command::Exec(args) => exec::run(overrides, *args),
        Command::Daemon(args) => daemon::run(overrides, *args),
        Command::Thread(command) => thread::run(command),
        Command::Diff(args) => diff::run(&args),
        Command::Undo(args) => undo::run(&args),
        Command::Apply(args) => apply::run(&args),
        Command::Gc(args) => gc::run(&args),
        Command::Sandbox(args) => sandbox::run(args),
        Command::Doctor(args) => doctor::run(overrides, args),
        Command::Judge(args) => judge::run(overrides, &args),
        Command::Mock(args) => mock::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Demo(args) => demo::run(&args),
        Command::Init(args) => init::run(args),
        Command::Login(args) => login::login(overrides, args),
        Command::Logout(args) => login::logout(overrides, args),
        Command::Config(command) => config::run(overrides, command),
        #[cfg(feature = "fleet")]
        Command::Fleet(command) => fleet::run(overrides, command),
        Command::Hooks(command) => hooks::run(overrides, command),
        Command::Mcp(command) => mcp::run(overrides, command),
        Command::McpServer(args) => mcp_server::run(overrides, args),
        Command::Plugin(command) => plugin::run(overrides, command),
        Command::Model(ModelCommand::List(args)) => model_list::run(overrides, args),
        Command::Debug(DebugCommand::Models(args)) => debug_models::run(overrides, args),
        Command::Shim(ShimCommand::Install(args)) => shim::install(&args),
        Command::Completions(args) => shell::completions(&args),
        Command::Man(args) => shell::man(&args),
    };
    outcome.unwrap_or_else(|error| {
        log::print(tracing::Level::ERROR, &format!("{error:#}"));
        ExitCode::FAILURE
    })
}

fn app_server(config: Vec<Override>, args: AppServer) -> anyhow::Result<()> {
    match args.command {
        None => app_server::run(config, &args.serve, &mut app_server::NoLifecycle),
        Some(AppServerCommand::GenerateJsonSchema(args)) => generate::json_schema(&args),
        Some(AppServerCommand::GenerateTs(args)) => generate::typescript(&args),
        Some(AppServerCommand::GenerateReference(args)) => generate::reference(&args),
    }
}
