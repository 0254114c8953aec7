//! `raddle doctor`: what holds on this machine, and how to mend what does not.

mod environment;
mod model;
mod sandbox;
mod storage;

use std::process::ExitCode;

use anyhow::{Context, Result};
use raddle_sandbox::{KeeperCommand, Launcher};
use raddle_server::{Configuration, Override};
use serde_json::{Value, json};

use crate::cli::Doctor;
use crate::config;
use crate::home::Home;
use crate::print::{Printer, sanitize};
use crate::rules::RuleStore;

/// What was found of one part.
#[derive(Debug)]
struct Finding {
    part: &'static str,
    state: State,
    message: String,
    /// Lines that say more.
    more: Vec<String>,
    /// What to do, if there is something.
    fix: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Ok,
    /// It works, and could be better.
    Warning,
    /// Something that was asked for does not work.
    Error,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "well",
            Self::Warning => "odd",
            Self::Error => "broken",
        }
    }
}

impl Finding {
    fn ok(part: &'static str, says: impl Into<String>) -> Self {
        Self {
            part,
            state: State::Ok,
            message: says.into(),
            more: Vec::new(),
            fix: Vec::new(),
        }
    }

    fn warning(part: &'static str, says: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            state: State::Warning,
            fix: vec![mend.into()],
            ..Self::ok(part, says)
        }
    }

    fn error(part: &'static str, says: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            state: State::Error,
            ..Self::warning(part, says, mend)
        }
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{}: {}", self.part, self.message)];
        lines.extend(self.more.iter().cloned());
        if !self.fix.is_empty() {
            lines.push("to mend:".to_owned());
            lines.extend(self.fix.iter().map(|it| format!("  {it}")));
        }
        lines
    }

    fn as_json(&self) -> Value {
        json!({
            "part": self.part,
            "state": self.state.name(),
            "says": self.message,
            "more": self.more.iter().map(|it| it.trim()).collect::<Vec<_>>(),
            "mend": self.fix,
        })
    }
}

/// Prints what was found.
pub(crate) fn run(mut overrides: Vec<Override>, args: Doctor) -> Result<ExitCode> {
    let home = Home::find()?;
    overrides.extend(args.settings.config);
    let mut findings = sandbox::look(args.again, &overrides, &home)?;
    findings.push(rules(&home));
    match config::open(&home, overrides) {
        Ok(config) => {
            findings.push(configuration(&config));
            findings.push(search_path(&config)?);
            findings.push(model::look(&home, &config)?);
            if args.online {
                findings.extend(model::ask(&home, &config)?);
            }
        }
        Err(error) => findings.push(Finding::error(
            "config",
            format!("{:#}", error.root_cause()),
            "mend that line, or move the file away; the server does not start until then",
        )),
    }
    findings.push(storage::look(&home));
    findings.extend(environment::look(&home));
    print(&findings, args.json)?;
    let is_broken = findings.iter().any(|it| it.state == State::Error);
    Ok(match is_broken {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

fn print(findings: &[Finding], is_json: bool) -> Result<()> {
    let worst = findings.iter().map(|it| it.state).max();
    let worst = worst.unwrap_or(State::Ok);
    let mut printer = Printer::new();
    if is_json {
        let parts: Vec<Value> = findings.iter().map(Finding::as_json).collect();
        printer.line(&json!({ "state": worst.name(), "parts": parts }).to_string())?;
        return Ok(printer.flush()?);
    }
    for line in findings.iter().flat_map(Finding::lines) {
        printer.line(&sanitize(&line))?;
    }
    let named = |state: State| {
        let found = findings.iter().filter(|it| it.state == state);
        found.map(|it| it.part).collect::<Vec<_>>().join(", ")
    };
    printer.line(&match worst {
        State::Ok => "all is well".to_owned(),
        State::Warning => format!("it works; to look at: {}", named(State::Warning)),
        State::Error => format!("broken: {}", named(State::Error)),
    })?;
    Ok(printer.flush()?)
}

/// What is odd about the rules, or why they cannot be used.
fn rules(home: &Home) -> Finding {
    let warnings = match RuleStore::open(home) {
        Ok(rules) => rules.warnings(),
        Err(error) => {
            return Finding::error(
                "rules",
                format!("{error:#}"),
                "mend that file; the server does not start until then",
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
    let mut found = Finding::warning(
        "rules",
        "some of what they say has no meaning",
        "see docs/policy.md",
    );
    found.more = warnings.iter().map(|it| format!("  {it}")).collect();
    found
}

fn configuration(config: &Configuration) -> Finding {
    let file = config.user_file().display().to_string();
    let (values, warnings, problems) = (config.values(), config.warnings(), config.problems());
    let mend = format!("change it in {file}; docs/config.md has all keys");
    let mut found = match (problems.is_empty(), warnings.is_empty()) {
        (true, true) => return plain(config, &file, values.len()),
        (true, false) => Finding::warning("config", "some of what it says is not used", mend),
        (false, _) => Finding::error("config", "some of what it says cannot be", mend),
    };
    let others = warnings.iter().filter(|it| !problems.contains(it));
    let lines = problems.iter().chain(others);
    found.more = lines.map(|it| format!("  {it}")).collect();
    found
}

/// Where commands look for programs.
fn search_path(config: &Configuration) -> Result<Finding> {
    if !config.asks_login_shell() {
        let own = raddle_sandbox::own_path();
        let says = format!("the server's own: {}", own.display());
        return Ok(Finding::ok("path", says));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
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
                wrong.as_ref().err().map_or("", String::as_str)
            ),
            "see what your profile does, or set login_shell_path = false in config.toml",
        ),
    })
}

/// One about which there is nothing odd.
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
