//! Paths of a policy, followed link by link.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::budget::SurveyBudget;

/// The limit of the kernel.
const LINKS_MAX: usize = 40;

/// A path of a policy, and its target.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PolicyPath {
    /// The path without links.
    pub real: PathBuf,
    /// The links that it passes through, by their real paths.
    pub links: Vec<PathBuf>,
    /// Whether the path exists.
    pub exists: bool,
}

impl PolicyPath {
    /// Follows a path up to the first part that cannot be read.
    pub fn of(path: &Path) -> io::Result<Self> {
        Self::follow(path, |_| Ok(()))
    }

    /// Follows a path as [`Self::of`] does, within a budget.
    pub(super) fn within(path: &Path, budget: &mut SurveyBudget) -> io::Result<Self> {
        Self::follow(path, |it| budget.look(it))
    }

    /// Follows a path; calls `look` before each lookup on the disk.
    fn follow(path: &Path, mut look: impl FnMut(&Path) -> io::Result<()>) -> io::Result<Self> {
        let mut policy_path = Self {
            real: PathBuf::from("/"),
            links: Vec::new(),
            exists: true,
        };
        let mut remaining = names(path);
        while let Some(name) = remaining.pop() {
            if name == ".." {
                policy_path.real.pop();
                continue;
            }
            let next = policy_path.real.join(&name);
            look(&next)?;
            match fs::symlink_metadata(&next) {
                Ok(metadata) if metadata.is_symlink() => {
                    if policy_path.links.len() == LINKS_MAX {
                        return Err(io::Error::other("too many links"));
                    }
                    let target = fs::read_link(&next)?;
                    policy_path.links.push(next);
                    if target.is_absolute() {
                        policy_path.real = PathBuf::from("/");
                    }
                    remaining.extend(names(&target));
                }
                Ok(_) => policy_path.real = next,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    policy_path.exists = false;
                    policy_path.real = next;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(policy_path)
    }
}

/// Returns the names of a path in reverse, so that the next one is last.
fn names(path: &Path) -> Vec<OsString> {
    let names = path.components().rev().filter_map(|it| match it {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    names.collect()
}
