//! `raddle doctor`: checks this machine, and prints how to fix what is wrong.

mod environment;
mod model;
mod sandbox;
mod storage;

use std::process::ExitCode;

use anyhow::Result;
use raddle_config::{Configuration, Override, StoreSetting};
use raddle_console::{Printer, sanitize};
use raddle_sandbox::{KeeperCommand, Launcher};
use raddle_server::config_problems;
use serde_json::{Value, json};

pub(crate) use self::storage::size;
use crate::cli::Doctor;
use crate::config;
use crate::home::Home;
use crate::postgres;
use crate::rules::RuleStore;
use crate::runtime;

/// The result of one check.
#[derive(Debug)]
struct Finding {
    part: &'static str,
    state: State,
    message: String,
    /// The whole finding in one line, if its details are shown only on request.
    brief: Option<String>,
    /// Lines with details.
    more: Vec<String>,
    /// Instructions to fix it, possibly none.
    fix: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Ok,
    /// It works, but could be better.
    Warning,
    /// A part that is configured does not work.
    Error,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl Finding {
    fn ok(part: &'static str, message: impl Into<String>) -> Self {
        Self {
            part,
            state: State::Ok,
            message: message.into(),
            brief: None,
            more: Vec::new(),
            fix: Vec::new(),
        }
    }

    fn warning(part: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            state: State::Warning,
            fix: vec![fix.into()],
            ..Self::ok(part, message)
        }
    }

    fn error(part: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            state: State::Error,
            ..Self::warning(part, message, fix)
        }
    }

    fn lines(&self, is_verbose: bool) -> Vec<String> {
        if let Some(brief) = self.brief.as_ref().filter(|_| !is_verbose) {
            return vec![format!("{}: {brief}", self.part)];
        }
        let mut lines = vec![format!("{}: {}", self.part, self.message)];
        lines.extend(self.more.iter().cloned());
        if !self.fix.is_empty() {
            lines.push("to fix:".to_owned());
            lines.extend(self.fix.iter().map(|it| format!("  {it}")));
        }
        lines
    }

    fn as_json(&self) -> Value {
        json!({
            "part": self.part,
            "state": self.state.name(),
            "message": self.message,
            "more": self.more.iter().map(|it| it.trim()).collect::<Vec<_>>(),
            "fix": self.fix,
        })
    }
}

/// Runs all checks and prints the findings: first those without which no turn can run.
pub(crate) fn run(mut overrides: Vec<Override>, mut args: Doctor) -> Result<ExitCode> {
    let home = Home::find()?;
    overrides.append(&mut args.settings.config);
    let mut findings = Vec::new();
    let config = config::open(&home, overrides.clone());
    match &config {
        Ok(config) => {
            findings.push(model::look(&home, config)?);
            match args.online {
                true => findings.extend(model::ask(&home, config)?),
                false => findings.extend(model::try_port(config)),
            }
        }
        Err(error) => findings.push(Finding::error(
            "config",
            format!("{:#}", error.root_cause()),
            "fix that line, or move the file away; the server does not start until then",
        )),
    }
    findings.extend(sandbox::look(args.again, &overrides, &home)?);
    findings.push(rules(&home));
    if let Ok(config) = &config {
        findings.push(configuration(config));
        findings.push(search_path(config)?);
    }
    findings.push(match postgres::configured_store(&home, overrides) {
        Ok(StoreSetting::Local) => storage::look(&home),
        // Reported above.
        Err(_) if config.is_err() => storage::look(&home),
        Ok(StoreSetting::Postgres(_)) => Finding::ok(
            storage::PART,
            "in the database that `[store]` names; `raddle fleet check` examines it",
        ),
        Err(error) => Finding::error(
            storage::PART,
            format!("{error:#}"),
            "correct `[store]`, or remove it to store threads in the home; no server starts until then",
        ),
    });
    findings.extend(environment::look(&home));
    print(&findings, &args)?;
    let is_broken = findings.iter().any(|it| it.state == State::Error);
    Ok(match is_broken {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

fn print(findings: &[Finding], args: &Doctor) -> Result<()> {
    let worst = findings.iter().map(|it| it.state).max();
    let worst = worst.unwrap_or(State::Ok);
    let mut printer = Printer::new();
    if args.json {
        let parts: Vec<Value> = findings.iter().map(Finding::as_json).collect();
        printer.line(&json!({ "state": worst.name(), "parts": parts }).to_string())?;
        return Ok(printer.flush()?);
    }
    let lines = findings.iter().flat_map(|it| it.lines(args.verbose));
    for line in lines {
        printer.line(&sanitize(&line))?;
    }
    let named = |state: State| {
        let matching = findings.iter().filter(|it| it.state == state);
        matching.map(|it| it.part).collect::<Vec<_>>().join(", ")
    };
    printer.line(&match worst {
        State::Ok => "all is well".to_owned(),
        State::Warning => format!("it works; to look at: {}", named(State::Warning)),
        State::Error => format!("broken: {}", named(State::Error)),
    })?;
    Ok(printer.flush()?)
}

/// Reports the warnings of the rules, or why they cannot be read.
fn rules(home: &Home) -> Finding {
    let warnings = match RuleStore::open(home) {
        Ok(rules) => rules.warnings(),
        Err(error) => {
            return Finding::error(
                "rules",
                format!("{error:#}"),
                "fix that file; the server does not start until then",
            );
        }
    };
    if warnings.is_empty() {
        let file = home.rules();
        return match file.exists() {
            true => Finding::ok("rules", file.display().to_string()),
            false => Finding::ok("rules", "you have none of your own"),
        };
    }
    let mut finding =
        Finding::warning("rules", "some entries have no effect", "see docs/policy.md");
    finding.more = warnings.iter().map(|it| format!("  {it}")).collect();
    finding
}

fn configuration(config: &Configuration) -> Finding {
    let file = config.user_file().display().to_string();
    let (values, warnings) = (config.values(), config.warnings());
    let problems = config_problems(config);
    let fix = format!("change it in {file}; docs/config.md has all keys");
    let mut finding = match (problems.is_empty(), warnings.is_empty()) {
        (true, true) => return plain(config, &file, values.len()),
        (true, false) => Finding::warning("config", "some keys are not used", fix),
        (false, _) => Finding::error("config", "some values cannot be used", fix),
    };
    let others = warnings.iter().filter(|it| !problems.contains(it));
    let lines = problems.iter().chain(others);
    finding.more = lines.map(|it| format!("  {it}")).collect();
    finding
}

/// Reports where commands look for programs.
fn search_path(config: &Configuration) -> Result<Finding> {
    if !config.asks_login_shell() {
        let own = raddle_sandbox::own_path();
        let message = format!("the server's own: {}", own.display());
        return Ok(Finding::ok("path", message));
    }
    let runtime = runtime::current_thread()?;
    let engine = Launcher::new(KeeperCommand::own());
    let login = runtime.block_on(raddle_sandbox::login_path(&engine));
    let shell = login.shell.display();
    Ok(match (login.merged(), &login.path) {
        (Some(path), _) => Finding::ok(
            "path",
            format!("with that of the login shell {shell}: {}", path.display()),
        ),
        (None, wrong) => Finding::warning(
            "path",
            format!(
                "the login shell {shell} does not say its PATH: {}; commands get the server's own",
                wrong
                    .as_ref()
                    .err()
                    .map(ToString::to_string)
                    .unwrap_or_default()
            ),
            "see what your profile does, or set login_shell_path = false in config.toml",
        ),
    })
}

/// The finding for a configuration without problems or warnings.
fn plain(config: &Configuration, file: &str, count: usize) -> Finding {
    match config.user_file().exists() {
        true => Finding::ok("config", format!("{file}, {count} values count")),
        false => Finding::warning(
            "config",
            format!("{file} is not there"),
            "`raddle init` writes one",
        ),
    }
}
