//! `raddle judge`: shows how the rules decide a command line, without running it.

mod containment;

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use raddle_config::Override;
use raddle_console::Printer;
use raddle_core::policy::{Act, ActKind, ParsedScript, UNKNOWN, Verdict, proposed};
use raddle_core::ports::Rulebook as _;
use raddle_core::{ApprovalPolicy, Settings};
use raddle_tools::shell::{display_line, parse_line, quoted};

use self::containment::Containment;
use crate::cli::{Judge, JudgeApproval};
use crate::config;
use crate::home::Home;
use crate::log;
use crate::rules::RuleStore;
use crate::sandbox;

/// Prints the verdict, its reason, the sandbox, and the commands parsed from the line.
pub(crate) fn run(overrides: Vec<Override>, args: &Judge) -> Result<ExitCode> {
    ensure!(
        !args.line.trim().is_empty(),
        "the command line is empty; give one as one argument, like raddle judge 'git push'"
    );
    let home = Home::find()?;
    let rules = RuleStore::open(&home)?;
    let config = config::open(&home, overrides.clone())?;
    for warning in rules.warnings().iter().chain(&config.invalid_values()) {
        log::print_line(&format!("raddle: warning: {warning}"));
    }
    let containment = Containment::of(&config)?;
    let cwd = std::env::current_dir().context("there is no current folder; go to one")?;
    let script = parse_line(&args.line);
    let act = Act {
        kind: ActKind::Command {
            script: script.clone(),
            cwd: cwd.to_string_lossy().into_owned(),
            beyond: args.beyond,
        },
        digest: String::new(),
        reason: None,
    };
    let settings = Settings {
        approval: match args.approval_policy {
            JudgeApproval::Untrusted => ApprovalPolicy::Untrusted,
            JudgeApproval::OnRequest => ApprovalPolicy::OnRequest,
            JudgeApproval::Never => ApprovalPolicy::Never,
        },
        sandbox: containment.sandbox.clone(),
        ..Settings::default()
    };
    let ruling = rules.policy().judge(&act, &settings, &BTreeSet::new());
    let tier = match containment.is_confined(args.beyond) && ruling.verdict != Verdict::Deny {
        true => Some(sandbox::measure(false, &overrides)?.sandbox.tier()),
        false => None,
    };
    let contained = containment.line(ruling.verdict, tier, &cwd);
    let verdict = match ruling.verdict {
        Verdict::Allow => "allow",
        Verdict::Ask => "ask",
        Verdict::Deny => "deny",
    };
    let mut printer = Printer::new();
    printer.line(&display_line(&format!(
        "{verdict}, by {}: {}",
        ruling.rule, ruling.reason
    )))?;
    printer.line(&display_line(&contained))?;
    for line in parts(&script) {
        printer.line(&display_line(&line))?;
    }
    printer.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn parts(script: &ParsedScript) -> Vec<String> {
    let mut lines = vec![match script.plain {
        true => "these are all its commands:".to_owned(),
        false => {
            "it is not plain, so no rule allows it; found in it (… is not known before it runs):"
                .to_owned()
        }
    }];
    let commands = script.commands.iter();
    lines.extend(commands.map(|it| format!("  {}", quoted(it).replace(UNKNOWN, "…"))));
    let rule = proposed(script);
    if !rule.is_empty() {
        lines.push(format!(
            "a rule could allow what begins with: {}",
            quoted(&rule)
        ));
    }
    lines
}
