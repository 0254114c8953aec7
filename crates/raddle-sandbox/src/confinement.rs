//! Starts a command so that it can do no more than its policy allows.

pub mod attempt;
mod bubblewrap;
mod budget;
mod filter;
mod folders;
mod git;
pub mod git_config;
mod git_index;
mod git_settings;
mod helper;
mod hidden_paths;
mod home;
mod inode_pins;
mod landlock;
mod measure;
mod mounts;
mod notice;
mod placeholders;
mod plan;
mod policy_path;
mod repositories;
mod safe_open;
mod survey;
mod syscalls;

pub use git::is_git_dir;
pub use git_settings::{git_control_paths, gitfile_path};
pub use helper::take_over;
pub use home::{home, is_around_home};
pub use measure::{Finding, Measurement, Options, measure};
pub use notice::Notice;
pub(crate) use notice::log as log_notices;
pub use policy_path::PolicyPath;
pub use syscalls::ignore_interrupts;
pub(crate) use syscalls::ignore_termination;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::launch::Launch;
use crate::policy::{Network, Policy, ReadScope, SandboxRules, Tmp};
use inode_pins::InodePin;
use mounts::{HELPER, Mounts};
use placeholders::Placeholders;
use plan::HelperPlan;
use repositories::RepositoryCache;
use survey::RuleSet;

/// Arguments that bubblewrap accepts, its own name included.
const ARGS_MAX: usize = 8_999;

/// Attempts to plan a sandbox; it is planned again when a path disappears in between.
const PLAN_TRIES_MAX: usize = 3;

/// Strength of the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Namespaces by bubblewrap, a seccomp filter, and Landlock where the kernel has it.
    A,
    /// Landlock and a seccomp filter, without namespaces.
    B,
    /// Nothing can be enforced.
    C,
}

impl Tier {
    /// Returns the letter of the tier in lower case.
    pub fn letter(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
            Self::C => "c",
        }
    }

    /// Returns the mechanisms of the tier in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "namespaces+landlock",
            Self::B => "landlock",
            Self::C => "none",
        }
    }
}

/// The sandbox of this machine. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SandboxHost {
    tier: Tier,
    parts: Arc<Parts>,
}

#[derive(Debug)]
struct Parts {
    /// Empty and unused where bubblewrap is not installed.
    bubblewrap: PathBuf,
    /// A binary whose `main` calls [`take_over`] first.
    helper: PathBuf,
    repositories: RepositoryCache,
    home: Option<PathBuf>,
}

/// A command that starts inside the sandbox.
///
/// Keep it until the command has ended, and start it from a thread that lives as long: when that
/// thread ends, the kernel ends the command.
#[derive(Debug)]
pub struct ConfinedLaunch {
    /// The launch that replaces the original one.
    pub launch: Launch,
    /// Paths that the sandbox could not protect in the folders that the command may write.
    pub notices: Vec<Notice>,
    is_confined: bool,
    /// Removes the placeholders from the disk on drop.
    _placeholders: Placeholders,
}

impl ConfinedLaunch {
    /// Whether the command runs in a sandbox; false under full access.
    pub fn is_confined(&self) -> bool {
        self.is_confined
    }
}

/// Reason why a command is not started. A refusal is an ordinary answer.
#[derive(Debug, thiserror::Error)]
pub enum SandboxRefusal {
    /// The machine has no mechanism to build a sandbox from.
    #[error(
        "this machine cannot sandbox commands, so none is run; install bubblewrap 0.8 or later, or boot a \
         kernel with Landlock 4 (Linux 6.7), and see `raddle doctor`; if the machine itself is the sandbox, give \
         full access"
    )]
    NoSandbox,
    /// The rules need more than the second tier can enforce.
    #[error(
        "{what} needs namespaces, which this machine does not support; install bubblewrap 0.8 or later and allow \
         user namespaces (`raddle doctor` names what is missing, and how to accept less), or relax the policy"
    )]
    Unenforceable {
        /// The feature that needs namespaces.
        what: &'static str,
    },
    /// The sandbox cannot use a path of the rules.
    #[error("{} cannot be used by the sandbox: {why}", path.display())]
    Root {
        /// The path as the rules name it.
        path: PathBuf,
        /// The reason, and what to do.
        why: &'static str,
    },
    /// A folder of the rules is reached through a link, which a command may have created.
    #[error(
        "{} leads to {}: the path contains a link, which a command may have created; remove the link, or name the \
         other folder",
        path.display(), real.display()
    )]
    Moved {
        /// The folder as the rules name it.
        path: PathBuf,
        /// The folder that it leads to.
        real: PathBuf,
    },
    /// A protected name is a link, and the sandbox cannot prevent that a link is replaced.
    #[error(
        "{} is a symbolic link, which the sandbox cannot protect; replace it by a folder, or remove the \
         name from the protected ones",
        path.display()
    )]
    Link {
        /// The protected name that is a link.
        path: PathBuf,
    },
    /// A worktree names a repository that does not exist, so a command could create it.
    #[error("a .git file names {}, which is not there; repair the worktree (`git worktree repair`)", path.display())]
    Lost {
        /// The repository that does not exist.
        path: PathBuf,
    },
    /// The server's own files lie where the command may write, and this tier cannot protect them.
    #[error(
        "{} belongs to the server and lies in a folder that commands may write, and the sandbox of this machine cannot \
         protect it; start in another folder, or install bubblewrap 0.8 or later (see `raddle doctor`)",
        path.display()
    )]
    Own {
        /// The server's own path.
        path: PathBuf,
    },
    /// The command would start in a folder that it may not read.
    #[error("the command would start in {}, which it may not read; list it among the readable paths", path.display())]
    Cwd {
        /// The working directory of the command.
        path: PathBuf,
    },
    /// An I/O error prevented the sandbox from being built.
    #[error("cannot build the sandbox around {}: {source}", path.display())]
    Disk {
        /// The path of the failed operation.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl SandboxHost {
    /// Builds a sandbox of this tier, whether or not it holds on this machine; [`measure`] finds
    /// out.
    pub fn new(tier: Tier, bubblewrap: PathBuf, helper: PathBuf) -> Self {
        let parts = Arc::new(Parts {
            bubblewrap,
            helper,
            repositories: RepositoryCache::default(),
            home: home(),
        });
        Self { tier, parts }
    }

    /// Returns the tier of the sandbox.
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// Returns the bubblewrap that makes the namespaces; `None` in the other tiers.
    pub fn bubblewrap(&self) -> Option<&Path> {
        (self.tier == Tier::A).then_some(&self.parts.bubblewrap)
    }

    /// Returns the paths that the sandbox could not protect under `policy`.
    pub fn notices(&self, policy: &Policy) -> Result<Vec<Notice>, SandboxRefusal> {
        match policy {
            Policy::FullAccess => Ok(Vec::new()),
            Policy::Confined(rules) => Ok(self.survey(rules)?.notices),
        }
    }

    fn survey(&self, rules: &SandboxRules) -> Result<RuleSet, SandboxRefusal> {
        let Parts {
            repositories, home, ..
        } = &*self.parts;
        RuleSet::survey(rules, self.tier, repositories, home.as_deref())
    }

    /// Wraps a command in the sandbox of `policy`; rejects rules that the tier cannot enforce.
    pub fn wrap(&self, launch: Launch, policy: &Policy) -> Result<ConfinedLaunch, SandboxRefusal> {
        let rules = match policy {
            Policy::FullAccess => {
                return Ok(ConfinedLaunch {
                    launch,
                    notices: Vec::new(),
                    is_confined: false,
                    _placeholders: Placeholders::default(),
                });
            }
            Policy::Confined(rules) => rules,
        };
        match self.tier {
            Tier::A => self.wrap_in_namespaces(&launch, rules),
            Tier::B => self.wrap_in_landlock(launch, rules),
            Tier::C => Err(SandboxRefusal::NoSandbox),
        }
    }

    /// Retries when a path disappears, because another command may remove what the survey just
    /// found.
    fn wrap_in_namespaces(
        &self,
        launch: &Launch,
        rules: &SandboxRules,
    ) -> Result<ConfinedLaunch, SandboxRefusal> {
        let mut tries = 1;
        loop {
            match self.wrap_once(launch, rules) {
                Err(SandboxRefusal::Disk { source, .. })
                    if source.kind() == io::ErrorKind::NotFound && tries < PLAN_TRIES_MAX =>
                {
                    tries += 1;
                }
                wrapped => return wrapped,
            }
        }
    }

    fn wrap_once(
        &self,
        launch: &Launch,
        rules: &SandboxRules,
    ) -> Result<ConfinedLaunch, SandboxRefusal> {
        let mut rule_set = self.survey(rules)?;
        // Protects the programs that build the sandbox of the next command.
        let own = [&self.parts.bubblewrap, &self.parts.helper];
        let own = own
            .into_iter()
            .filter_map(|it| std::fs::canonicalize(it).ok());
        rule_set
            .protected
            .extend(own.filter(|it| rule_set.write.iter().any(|root| it.starts_with(root))));
        rule_set.drop_covered();
        let mounts = Mounts::new(rules, &rule_set, &self.parts.helper);
        let cwd = std::fs::canonicalize(&launch.cwd).map_err(|source| SandboxRefusal::Disk {
            path: launch.cwd.clone(),
            source,
        })?;
        if !mounts.shows(&cwd) {
            return Err(SandboxRefusal::Cwd { path: cwd });
        }
        let plan = HelperPlan {
            tier: self.tier,
            network: rules.network.clone(),
            read: vec!["/".into()],
            write: mounts.writable(),
            inode_pins: mounts.inode_pins(&rule_set)?,
            processes_max: rules.processes_max,
        };
        let mut args = bubblewrap::args(&rules.network, &mounts, &cwd);
        args.extend(helper_args(&plan, launch));
        if args.len() > ARGS_MAX {
            let why = "the paths of the sandbox and the arguments of the command exceed the number that bubblewrap \
                       accepts; shorten the command, or name fewer paths";
            return Err(SandboxRefusal::Root { path: cwd, why });
        }
        let launch = Launch {
            program: self.parts.bubblewrap.clone().into(),
            args,
            cwd: "/".into(),
            env: helper::pack(&launch.env),
        };
        Ok(ConfinedLaunch {
            launch,
            notices: rule_set.notices,
            is_confined: true,
            _placeholders: rule_set.placeholders,
        })
    }

    fn wrap_in_landlock(
        &self,
        launch: Launch,
        rules: &SandboxRules,
    ) -> Result<ConfinedLaunch, SandboxRefusal> {
        if let Some(what) = namespace_only_rule(rules) {
            return Err(SandboxRefusal::Unenforceable { what });
        }
        let rule_set = self.survey(rules)?;
        let helper = std::fs::canonicalize(&self.parts.helper).unwrap_or_default();
        if let Some(root) = rule_set.write.iter().find(|root| helper.starts_with(root)) {
            return Err(SandboxRefusal::Root {
                path: root.clone(),
                why: "it contains the program that builds the sandbox, and a command could change that; name another folder",
            });
        }
        let read = match &rules.read {
            ReadScope::All => vec!["/".into()],
            ReadScope::Listed(_) => {
                let system = rule_set.system.into_iter().map(|(path, _)| path);
                let helper = self.parts.helper.clone();
                system.chain(rule_set.read).chain([helper]).collect()
            }
        };
        let inode_pins = rule_set.write.iter().map(|it| InodePin::new(it, it));
        let plan = HelperPlan {
            tier: self.tier,
            network: rules.network.clone(),
            read,
            inode_pins: inode_pins.collect::<Result<_, _>>()?,
            write: rule_set.write,
            // The kernel would count every process of the user.
            processes_max: None,
        };
        let launch = Launch {
            program: self.parts.helper.clone().into(),
            args: helper_args(&plan, &launch),
            cwd: launch.cwd,
            env: helper::pack(&launch.env),
        };
        Ok(ConfinedLaunch {
            launch,
            notices: rule_set.notices,
            is_confined: true,
            _placeholders: rule_set.placeholders,
        })
    }

    /// Path of the helper's binary as a sandboxed command sees it.
    fn helper_path(&self) -> &Path {
        match self.tier {
            Tier::A => Path::new(HELPER),
            _ => &self.parts.helper,
        }
    }
}

/// Returns the first rule that only a mount namespace can enforce.
fn namespace_only_rule(rules: &SandboxRules) -> Option<&'static str> {
    if !rules.write.is_empty() && !rules.protected.is_empty() {
        Some("protecting names inside a writable folder")
    } else if !rules.hidden.is_empty() {
        Some("hiding paths")
    } else if matches!(rules.network, Network::Proxy(_)) {
        Some("a way out through a proxy alone")
    } else if rules.tmp != Tmp::Plain {
        Some("a /tmp of the command's own")
    } else {
        None
    }
}

fn helper_args(plan: &HelperPlan, launch: &Launch) -> Vec<OsString> {
    let mut args = vec![OsString::from(helper::HELPER_ARG)];
    args.extend(plan.args());
    args.push(launch.program.clone());
    args.extend(launch.args.iter().cloned());
    args
}

#[cfg(test)]
mod tests;
