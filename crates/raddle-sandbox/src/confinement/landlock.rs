//! The paths that a fenced process may open, kept by the kernel whatever the mounts are.

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

/// What the second tier stands on: files that can be neither cut nor moved, and TCP.
const LEAST: ABI = ABI::V4;
/// What is asked for where the kernel has it: ioctls of devices, abstract sockets, signals.
const BEST: ABI = ABI::V7;

/// The devices that a program needs. In the first tier `/dev` holds no others but terminals of the fence's own;
/// where they are not, a program could read what is typed into the user's.
const DEVICES: [&str; 6] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

/// Programs read of themselves there. To write there would reach other processes and, as root, the kernel's
/// settings.
const PROCESSES: &str = "/proc";

/// Restricts this process for good.
pub(super) fn restrict(plan: &HelperPlan) -> Result<(), Error> {
    let written = written(plan)?;
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
        .add_rules(written.into_iter().map(Ok::<_, RulesetError>))?
        .add_rules(below(&devices(plan.tier), everything))?
        .restrict_self()?;
    Ok(())
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Rules(#[from] RulesetError),
    #[error(transparent)]
    Place(#[from] io::Error),
}

/// What may be written, by descriptors: a path may mean something else by now.
fn written(plan: &HelperPlan) -> io::Result<Vec<PathBeneath<OwnedFd>>> {
    let mut written = Vec::new();
    for path in &plan.write {
        let place = plan.inode_pins.iter().find(|it| it.path == *path);
        let file = match place {
            Some(place) => place.open()?,
            None => open_path(path, OFlags::empty())?,
        };
        let is_folder = FileType::from_raw_mode(fstat(&file)?.st_mode).is_dir();
        let access = match is_folder {
            true => AccessFs::from_all(BEST),
            false => AccessFs::from_file(BEST),
        };
        written.push(PathBeneath::new(file, access));
    }
    Ok(written)
}

fn below(
    paths: &[PathBuf],
    access: BitFlags<AccessFs>,
) -> impl Iterator<Item = Result<PathBeneath<PathFd>, RulesetError>> {
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
