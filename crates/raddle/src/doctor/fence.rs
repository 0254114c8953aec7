//! The fence around commands.

use anyhow::Result;
use raddle_sandbox::Tier;

use super::{Finding, State};
use crate::sandbox;

pub(super) fn look(again: bool) -> Result<Finding> {
    let measured = sandbox::measure(again)?;
    let tier = measured.fence.tier();
    let how = if measured.cached {
        "found earlier; --again tries anew"
    } else {
        "found just now"
    };
    let says = format!(
        "{} (tier {}, Landlock {}), {how}",
        tier.name(),
        tier.letter().to_uppercase(),
        measured.landlock
    );
    let mut more = Vec::new();
    let mut list = |title: &str, held: bool| {
        let found = measured.findings.iter().filter(|it| it.held == held);
        let found: Vec<String> = found.map(|it| format!("  {}", it.attempt.shows)).collect();
        if !found.is_empty() {
            more.push(format!("{title}:"));
            more.extend(found);
        }
    };
    list("holds", true);
    list("does not hold", false);
    if !measured.short_of.is_empty() {
        more.push("not stronger because:".to_owned());
        more.extend(measured.short_of.iter().map(|why| format!("  {why}")));
    }
    Ok(Finding {
        part: "sandbox",
        state: match tier {
            Tier::A => State::Well,
            Tier::B => State::Odd,
            Tier::C => State::Broken,
        },
        says,
        more,
        mend: advice(tier).iter().map(|it| (*it).to_owned()).collect(),
    })
}

/// What to do, if there is something.
fn advice(tier: Tier) -> &'static [&'static str] {
    match tier {
        Tier::A => &[],
        Tier::B => &[
            "install bubblewrap 0.8 or later (`apt-get install bubblewrap`), where root cannot be had ask the",
            "administrator; in a container, allow user namespaces (and an unmasked /proc) or accept this tier;",
            "on Ubuntu, `sysctl kernel.apparmor_restrict_unprivileged_userns=0` or use its own bubblewrap.",
            "Until then commands that write folders are refused, because no name in them can be protected. To accept",
            "that for a server's commands, write `sandbox_accept_tier = \"B\"` into its config.toml; for one command,",
            "say `raddle sandbox --unprotected`.",
        ],
        Tier::C => &[
            "install bubblewrap 0.8 or later and allow user namespaces, or boot Linux 6.7 or later with Landlock",
            "(`lsm=landlock,…` on the kernel's command line). Until then every fenced command is refused; if this",
            "machine is itself the fence, run commands with full access.",
        ],
    }
}
