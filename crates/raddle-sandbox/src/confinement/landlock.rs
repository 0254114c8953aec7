//! The paths that a sandboxed process may open; the kernel enforces them whatever the mounts are.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};
use rustix::fs::{FileType, OFlags, fstat};

use super::Tier;
use super::inode_pins::open_path;
use super::plan::HelperPlan;
use crate::policy::Network;

/// The minimum for the second tier: files that can be neither truncated nor moved, and TCP.
const ABI_MIN: ABI = ABI::V4;
/// Requested where the kernel has it: ioctls of devices, abstract sockets, signals.
const ABI_BEST: ABI = ABI::V7;

/// The devices that a program needs. In the first tier `/dev` holds only these and the sandbox's
/// own terminals; in the second, a program could otherwise read the input of the user's terminal.
const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

/// Programs read about themselves there. Writing there would reach other processes and, as root,
/// the kernel's settings.
const PROCESSES: &str = "/proc";

/// Restricts this process permanently.
pub(super) fn restrict(plan: &HelperPlan) -> Result<(), Error> {
    let writable = writable_rules(plan)?;
    let compat_level = match plan.tier {
        Tier::B => CompatLevel::HardRequirement,
        // The mounts hold already; this is a second layer, as strong as the kernel supports.
        _ => CompatLevel::BestEffort,
    };
    let best = CompatLevel::BestEffort;
    let mut rules = Ruleset::default()
        .set_compatibility(compat_level)
        .handle_access(AccessFs::from_all(ABI_MIN))?;
    if plan.tier == Tier::B && plan.network == Network::None {
        rules = rules.handle_access(AccessNet::from_all(ABI_MIN))?;
    }
    let everything = AccessFs::from_all(ABI_BEST);
    let read = AccessFs::from_read(ABI_BEST);
    rules
        .set_compatibility(best)
        .handle_access(everything)?
        .scope(Scope::from_all(ABI_BEST))?
        .create()?
        .add_rules(below(&plan.read, read))?
        .add_rules(below(&[PROCESSES.into()], read))?
        .add_rules(writable.into_iter().map(Ok::<_, RulesetError>))?
        .add_rules(below(&devices(plan.tier), everything))?
        .restrict_self()?;
    Ok(())
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Rules(#[from] RulesetError),
    #[error(transparent)]
    Pin(#[from] io::Error),
}

/// Returns the writable paths as descriptors, because a path may name another file by now.
fn writable_rules(plan: &HelperPlan) -> io::Result<Vec<PathBeneath<OwnedFd>>> {
    let mut rules = Vec::new();
    for path in &plan.write {
        let pin = plan.inode_pins.iter().find(|it| it.path == *path);
        let file = match pin {
            Some(pin) => pin.open()?,
            None => open_path(path, OFlags::empty())?,
        };
        let is_folder = FileType::from_raw_mode(fstat(&file)?.st_mode).is_dir();
        let access = match is_folder {
            true => AccessFs::from_all(ABI_BEST),
            false => AccessFs::from_file(ABI_BEST),
        };
        rules.push(PathBeneath::new(file, access));
    }
    Ok(rules)
}

fn below(
    paths: &[PathBuf],
    access: BitFlags<AccessFs>,
) -> impl Iterator<Item = Result<PathBeneath<PathFd>, RulesetError>> {
    path_beneath_rules(paths, access)
}

/// Returns the allowed devices. In the first tier all of `/dev` belongs to the sandbox.
fn devices(tier: Tier) -> Vec<PathBuf> {
    let own: &[&str] = match tier {
        Tier::A => &["/dev"],
        _ => &DEVICES,
    };
    own.iter().map(PathBuf::from).collect()
}
