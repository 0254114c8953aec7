//! Checks of the sandbox for commands.

use anyhow::Result;
use raddle_config::Override;
use raddle_sandbox::{Measurement, Policy, SandboxHost, SandboxRules, Tier};

use super::{Finding, State};
use crate::home::Home;
use crate::sandbox;

/// Checks the sandbox, and the current folder as a workspace in it.
pub(super) fn look(again: bool, overrides: &[Override], home: &Home) -> Result<Vec<Finding>> {
    let measured = sandbox::measure(again, overrides)?;
    let mut findings = vec![machine(&measured)];
    if measured.sandbox.tier() == Tier::A {
        findings.extend(workspace(&measured.sandbox, home));
    }
    Ok(findings)
}

/// Reports protections of the current folder that the sandbox cannot enforce, or only by denying
/// more. `None` if it can enforce all.
fn workspace(sandbox: &SandboxHost, home: &Home) -> Option<Finding> {
    let cwd = std::env::current_dir().ok()?;
    let mut rules = SandboxRules::workspace_write(vec![cwd.clone()]);
    rules.hidden = home.paths().hidden_paths();
    let shown = cwd.display();
    Some(match sandbox.notices(&Policy::Confined(rules)) {
        Err(refused) => Finding {
            fix: vec!["work in another folder, or do what the line above says".to_owned()],
            ..Finding::warning(
                "workspace",
                format!("commands cannot write {shown}: {refused}"),
                "",
            )
        },
        Ok(notices) if notices.is_empty() => return None,
        Ok(notices) => Finding {
            more: notices.iter().map(|it| format!("  {it}")).collect(),
            ..Finding::warning(
                "workspace",
                format!("not everything in {shown} can be protected by itself"),
                "each line above says what to do; `raddle sandbox --unprotected` runs one command without protection",
            )
        },
    })
}

fn machine(measured: &Measurement) -> Finding {
    let tier = measured.sandbox.tier();
    let how = if measured.cached {
        "found earlier; --again tries anew"
    } else {
        "found just now"
    };
    let message = format!(
        "{} (tier {}, Landlock {}), {how}",
        tier.name(),
        tier.letter().to_uppercase(),
        measured.landlock
    );
    let mut more = Vec::new();
    if let Some(file) = measured.sandbox.bubblewrap() {
        more.push(format!("bubblewrap: {}", file.display()));
    }
    let mut list = |title: &str, stopped: bool| {
        let attempts = measured.findings.iter().filter(|it| it.stopped == stopped);
        let attempts: Vec<String> = attempts
            .map(|it| format!("  {}", it.attempt.shows))
            .collect();
        if !attempts.is_empty() {
            more.push(format!("{title}:"));
            more.extend(attempts);
        }
    };
    list("holds", true);
    list("does not hold", false);
    if !measured.short_of.is_empty() {
        more.push("not stronger because:".to_owned());
        more.extend(measured.short_of.iter().map(|why| format!("  {why}")));
    }
    Finding {
        part: "sandbox",
        state: match tier {
            Tier::A => State::Ok,
            Tier::B => State::Warning,
            Tier::C => State::Error,
        },
        message,
        more,
        fix: advice(tier).iter().map(|it| (*it).to_owned()).collect(),
    }
}

/// Instructions to strengthen the sandbox, possibly none.
fn advice(tier: Tier) -> &'static [&'static str] {
    match tier {
        Tier::A => &[],
        Tier::B => &[
            "install bubblewrap 0.8 or later (`apt-get install bubblewrap`), where root cannot be had ask the",
            "administrator; in a container, allow user namespaces (and an unmasked /proc) or accept this tier;",
            "on Ubuntu, `sysctl kernel.apparmor_restrict_unprivileged_userns=0` or use its own bubblewrap.",
            "Only a bubblewrap of root's in /usr/bin, /bin or /usr/local/bin is started. If yours is elsewhere (NixOS,",
            "Homebrew), say so with `raddle config set sandbox_bwrap_path /absolute/path/of/bwrap`.",
            "Until then commands that write folders are refused, because no name in them can be protected. To accept",
            "that for a server's commands, write `sandbox_accept_tier = \"B\"` into its config.toml; for one command,",
            "say `raddle sandbox --unprotected`.",
        ],
        Tier::C => &[
            "install bubblewrap 0.8 or later and allow user namespaces, or boot Linux 6.7 or later with Landlock",
            "(`lsm=landlock,…` on the kernel's command line). A bubblewrap that is not root's, or not in /usr/bin, /bin",
            "or /usr/local/bin, is named with `raddle config set sandbox_bwrap_path /absolute/path/of/bwrap`. Until then every sandboxed command is refused; if this",
            "machine is itself the sandbox, run commands with full access.",
        ],
    }
}
