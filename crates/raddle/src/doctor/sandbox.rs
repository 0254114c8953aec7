//! Checks of the sandbox for commands.

use anyhow::Result;
use raddle_config::Override;
use raddle_sandbox::{Measurement, Policy, SandboxHost, SandboxRules, Tier};

use super::{Finding, State};
use crate::home::Home;
use crate::sandbox;

/// The kernel's setting that only programs with an AppArmor profile create user namespaces.
const USERNS_RESTRICTION: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";

/// Instructions where that setting is the likely cause.
const PROFILE_ADVICE: [&str; 4] = [
    "the likely cause: kernel.apparmor_restrict_unprivileged_userns is 1, as on Ubuntu 24.04 and later, and no",
    "AppArmor profile lets bubblewrap create user namespaces. Install the profile raddle-bwrap, which is in",
    "/usr/share/doc/raddle or under apparmor/ of Raddle's archive, as docs/security.md says under \"AppArmor\".",
    "If that is not the cause:",
];

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
    let restriction = std::fs::read_to_string(USERNS_RESTRICTION).unwrap_or_default();
    let is_denied = is_userns_denied(&restriction, &measured.short_of);
    let profile: &[&str] = if is_denied { &PROFILE_ADVICE } else { &[] };
    let fix = profile.iter().chain(advice(tier));
    Finding {
        part: "sandbox",
        state: match tier {
            Tier::A => State::Ok,
            Tier::B => State::Warning,
            Tier::C => State::Error,
        },
        brief: Some(brief(&message, measured, is_denied)),
        message,
        more,
        fix: fix.map(|it| (*it).to_owned()).collect(),
    }
}

/// The finding in one line: the tier, and what a weak one means.
fn brief(message: &str, measured: &Measurement, is_denied: bool) -> String {
    let effect = match measured.sandbox.tier() {
        Tier::A => return message.to_owned(),
        Tier::B => "commands that write folders are refused",
        Tier::C => "every sandboxed command is refused",
    };
    let cause = match (is_denied, measured.short_of.first()) {
        (true, _) => "AppArmor probably lets bubblewrap create no user namespaces",
        (false, Some(cause)) => cause.as_str(),
        (false, None) => "bubblewrap does not confine commands",
    };
    format!("{message}; {effect}, because {cause}; `raddle doctor -v` says how to fix it")
}

/// Whether AppArmor is the likely cause: it restricts user namespaces, and bubblewrap, which begins
/// its errors with its name, was started and failed.
fn is_userns_denied(restriction: &str, short_of: &[String]) -> bool {
    restriction.trim() == "1" && short_of.iter().any(|it| it.contains("bwrap: "))
}

/// Instructions to strengthen the sandbox, possibly none.
fn advice(tier: Tier) -> &'static [&'static str] {
    match tier {
        Tier::A => &[],
        Tier::B => &[
            "install bubblewrap 0.8 or later (`apt-get install bubblewrap`), where root cannot be had ask the",
            "administrator; in a container, allow user namespaces (and an unmasked /proc) or accept this tier;",
            "on Ubuntu 24.04 and later, install the AppArmor profile that docs/security.md describes.",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apparmor_is_named_where_bubblewrap_failed_under_its_restriction() {
        let denied = "namespaces: bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted";
        let missing = "bubblewrap is not installed";
        for (restriction, short_of, expected) in [
            ("1\n", denied, true),
            ("0\n", denied, false),
            ("", denied, false),
            ("1\n", missing, false),
        ] {
            let found = is_userns_denied(restriction, &[short_of.to_owned()]);
            assert_eq!(found, expected, "{restriction:?} {short_of}");
        }
    }
}
