//! `raddle doctor`: what holds on this machine.

use std::process::ExitCode;

use anyhow::Result;
use raddle_sandbox::{Measured, Tier};

use crate::cli::Doctor;
use crate::home::Home;
use crate::print::{Printer, harmless};
use crate::rules::Rules;
use crate::sandbox;

/// Prints what was found.
pub(crate) fn run(args: &Doctor) -> Result<ExitCode> {
    let measured = sandbox::measure(args.again)?;
    let mut printer = Printer::new();
    for line in report(&measured).into_iter().chain(rules()?) {
        printer.line(&harmless(&line))?;
    }
    printer.flush()?;
    Ok(match measured.fence.tier() {
        Tier::A | Tier::B => ExitCode::SUCCESS,
        Tier::C => ExitCode::FAILURE,
    })
}

/// What is odd about the rules, or why they cannot be used.
fn rules() -> Result<Vec<String>> {
    let warnings = match Rules::open(&Home::find()?) {
        Ok(rules) => rules.warnings(),
        Err(error) => vec![format!(
            "{error:#}; the server does not start until it is mended"
        )],
    };
    let title = (!warnings.is_empty()).then(|| "rules:".to_owned());
    let lines = warnings.iter().map(|it| format!("  {it}"));
    Ok(title.into_iter().chain(lines).collect())
}

fn report(measured: &Measured) -> Vec<String> {
    let tier = measured.fence.tier();
    let how = if measured.cached {
        "found earlier; --again tries anew"
    } else {
        "found just now"
    };
    let mut lines = vec![format!(
        "sandbox: {} (tier {}, Landlock {}), {how}",
        tier.name(),
        tier.letter().to_uppercase(),
        measured.landlock
    )];
    let mut list = |title: &str, held: bool| {
        let found: Vec<_> = measured
            .findings
            .iter()
            .filter(|it| it.held == held)
            .collect();
        if !found.is_empty() {
            lines.push(format!("{title}:"));
            lines.extend(found.iter().map(|it| format!("  {}", it.attempt.shows)));
        }
    };
    list("holds", true);
    list("does not hold", false);
    if !measured.short_of.is_empty() {
        lines.push("not stronger because:".to_owned());
        lines.extend(measured.short_of.iter().map(|why| format!("  {why}")));
    }
    lines.extend(advice(tier).iter().map(|it| (*it).to_owned()));
    lines
}

/// What to do, if there is something.
fn advice(tier: Tier) -> &'static [&'static str] {
    match tier {
        Tier::A => &[],
        Tier::B => &[
            "to mend:",
            "  install bubblewrap 0.8 or later (`apt-get install bubblewrap`), where root cannot be had ask the",
            "  administrator; in a container, allow user namespaces (and an unmasked /proc) or accept this tier;",
            "  on Ubuntu, `sysctl kernel.apparmor_restrict_unprivileged_userns=0` or use its own bubblewrap.",
            "  Until then commands that write folders are refused, because no name in them can be protected. To accept",
            "  that for a server's commands, write `sandbox_accept_tier = \"B\"` into its config.toml; for one command,",
            "  say `raddle sandbox --unprotected`.",
        ],
        Tier::C => &[
            "to mend:",
            "  install bubblewrap 0.8 or later and allow user namespaces, or boot Linux 6.7 or later with Landlock",
            "  (`lsm=landlock,…` on the kernel's command line). Until then every fenced command is refused; if this",
            "  machine is itself the fence, run commands with full access.",
        ],
    }
}
