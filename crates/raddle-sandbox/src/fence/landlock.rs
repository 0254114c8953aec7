//! The paths that a fenced process may open, kept by the kernel whatever the mounts are.

use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};

use super::Tier;
use super::plan::Plan;
use crate::policy::Network;

/// What the second tier stands on: files that can be neither cut nor moved, and TCP.
const LEAST: ABI = ABI::V4;
/// What is asked for where the kernel has it: ioctls of devices, abstract sockets, signals.
const BEST: ABI = ABI::V7;

/// The devices that a program needs. In the first tier `/dev` holds no others.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// Programs read of themselves there. To write there would reach other processes and, as root, the kernel's
/// settings.
const PROCESSES: &str = "/proc";

/// Restricts this process for good.
pub(super) fn restrict(plan: &Plan) -> Result<(), RulesetError> {
    let needed = match plan.tier {
        Tier::B => CompatLevel::HardRequirement,
        // The mounts hold already; this is a second lock, as strong as the kernel has it.
        _ => CompatLevel::BestEffort,
    };
    let best = CompatLevel::BestEffort;
    let mut rules = Ruleset::default()
        .set_compatibility(needed)
        .handle_access(AccessFs::from_all(LEAST))?;
    if plan.tier == Tier::B && plan.network == Network::None {
        rules = rules.handle_access(AccessNet::from_all(LEAST))?;
    }
    let everything = AccessFs::from_all(BEST);
    let read = AccessFs::from_read(BEST);
    rules
        .set_compatibility(best)
        .handle_access(everything)?
        .scope(Scope::from_all(BEST))?
        .create()?
        .add_rules(below(&plan.read, read))?
        .add_rules(below(&[PROCESSES.into()], read))?
        .add_rules(below(&plan.write, everything))?
        .add_rules(below(&devices(plan.tier), everything))?
        .restrict_self()?;
    Ok(())
}

fn below(
    paths: &[PathBuf],
    access: BitFlags<AccessFs>,
) -> impl Iterator<Item = Result<landlock::PathBeneath<landlock::PathFd>, RulesetError>> {
    path_beneath_rules(paths, access)
}

/// In the first tier all of `/dev` is the fence's own.
fn devices(tier: Tier) -> Vec<PathBuf> {
    let own: &[&str] = match tier {
        Tier::A => &["/dev"],
        _ => &DEVICES,
    };
    own.iter().map(PathBuf::from).collect()
}
