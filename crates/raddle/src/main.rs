//! The binary: it reads the command line and the environment, and ties the crates together.
//!
//! Below: everything. Above: the person or the program that starts it.

mod app_server;
mod cli;
mod generate;
mod home;
mod log;
mod model;
mod threads;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{AppServerCommand, Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    log::start();
    let Command::AppServer(args) = cli.command;
    let outcome = match args.command {
        None => app_server::run(cli.config, &args.serve),
        Some(AppServerCommand::GenerateJsonSchema(args)) => generate::json_schema(&args),
        Some(AppServerCommand::GenerateTs(args)) => generate::typescript(&args),
        Some(AppServerCommand::GenerateReference(args)) => generate::reference(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::say(&format!("raddle: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
