//! Paths of a policy, followed link by link.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::budget::SurveyBudget;

/// As many as the kernel follows.
const LINKS_MAX: usize = 40;

/// A path of a policy, and where it leads.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PolicyPath {
    /// Without links.
    pub real: PathBuf,
    /// The links that it passes through, by where they really stand.
    pub links: Vec<PathBuf>,
    /// Whether anything is there.
    pub exists: bool,
}

impl PolicyPath {
    /// Follows a path as far as it can be seen.
    pub fn of(path: &Path) -> io::Result<Self> {
        Self::follow(path, |_| Ok(()))
    }

    /// The same, as far as the budget goes.
    pub(super) fn within(path: &Path, budget: &mut SurveyBudget) -> io::Result<Self> {
        Self::follow(path, |it| budget.look(it))
    }

    /// `look` is asked before the disk is asked about a path.
    fn follow(path: &Path, mut look: impl FnMut(&Path) -> io::Result<()>) -> io::Result<Self> {
        let mut way = Self {
            real: PathBuf::from("/"),
            links: Vec::new(),
            exists: true,
        };
        let mut ahead = names(path);
        while let Some(name) = ahead.pop() {
            if name == ".." {
                way.real.pop();
                continue;
            }
            let next = way.real.join(&name);
            look(&next)?;
            match fs::symlink_metadata(&next) {
                Ok(found) if found.is_symlink() => {
                    if way.links.len() == LINKS_MAX {
                        return Err(io::Error::other("too many links"));
                    }
                    let target = fs::read_link(&next)?;
                    way.links.push(next);
                    if target.is_absolute() {
                        way.real = PathBuf::from("/");
                    }
                    ahead.extend(names(&target));
                }
                Ok(_) => way.real = next,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    way.exists = false;
                    way.real = next;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(way)
    }
}

/// The names of a path; the next one is last.
fn names(path: &Path) -> Vec<OsString> {
    let names = path.components().rev().filter_map(|it| match it {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    names.collect()
}
