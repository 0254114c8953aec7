//! `raddle init`: writes a first configuration.

mod answers;
mod detection;
mod live_check;
mod menu;
mod prompt;
mod text;

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use raddle_config::Configuration;

use self::answers::{InitAnswers, KeyLocation};
use crate::cli::Init;
use crate::config;
use crate::home::{self, Home};
use crate::log;

/// The schema's file, beside the configuration that names it.
const SCHEMA: &str = "config.schema.json";

pub(crate) fn run(args: Init) -> Result<ExitCode> {
    let home = Home::find()?;
    let paths = home.paths();
    let file = &paths.user_config;
    if file.exists() && !args.force {
        let change = match &args.model {
            Some(model) if args.base_url.is_none() => format!("model {model}"),
            _ => "KEY VALUE".to_owned(),
        };
        bail!(
            "{} is there already; change it with `raddle config set {change}`, or replace it with --force",
            file.display()
        );
    }
    let answers = InitAnswers::get(&args, &home)?;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&home.config)
        .with_context(|| home::not_made(&home.config))?;
    write(&home.config.join(SCHEMA), &(config::schema()? + "\n"))?;
    write(file, &text::of(&answers))?;
    // Read the file back as a server would.
    let read = Configuration::open(&paths, Vec::new())?;
    for warning in read.warnings() {
        log::print_line(&format!("raddle: warning: {warning}"));
    }
    log::print_line(&format!("wrote {}", file.display()));
    if let KeyLocation::Variable(name) = &answers.key
        && std::env::var_os(name).is_none_or(|it| it.is_empty())
    {
        let login = match text::is_usual(&answers, name) {
            true => format!(
                ", or store the key with `raddle login {}`",
                answers.provider
            ),
            false => String::new(),
        };
        log::print_line(&format!(
            "{name} is not set here; set it to the key: export {name}=…{login}"
        ));
    } else if args.model.is_none() {
        // The model was chosen on the terminal.
        live_check::offer()?;
    }
    log::print_line(
        "next: `raddle doctor` checks the setup, `raddle exec 'say hello'` asks the model",
    );
    Ok(ExitCode::SUCCESS)
}

/// Replaces a file atomically. Only its owner can read it.
fn write(file: &Path, text: &str) -> Result<()> {
    let cannot = || format!("cannot write {}", file.display());
    let new = file.with_extension("new");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut opened = options.open(&new).with_context(cannot)?;
    opened.write_all(text.as_bytes()).with_context(cannot)?;
    opened.sync_all().with_context(cannot)?;
    fs::rename(&new, file).with_context(cannot)
}
