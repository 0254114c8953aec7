//! How a command is started so that it can do no more than its policy allows.

pub mod attempt;
mod budget;
mod filter;
mod git;
pub mod git_config;
mod git_index;
mod git_settings;
mod helper;
mod hidden_paths;
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

pub use git::{home, is_around_home, is_git_dir};
pub use git_settings::{gitfile_path, obeyed_paths};
pub use helper::take_over;
pub use measure::{Finding, Measurement, Options, measure};
pub use notice::Notice;
pub(crate) use notice::log as log_notices;
pub use policy_path::PolicyPath;
pub(crate) use syscalls::ignore_endings;
pub use syscalls::ignore_interrupts;

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

/// How many words bubblewrap takes, its own name among them.
const WORDS_MAX: usize = 8_999;

/// How often a fence is planned anew because something went away.
const TRIES: usize = 3;

/// How strong a fence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Namespaces by bubblewrap, a filter of system calls, and Landlock where the kernel has it.
    A,
    /// Landlock and a filter of system calls, without namespaces.
    B,
    /// Nothing can be enforced.
    C,
}

impl Tier {
    /// Its letter, in lower case.
    pub fn letter(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
            Self::C => "c",
        }
    }

    /// What it is made of, in a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::A => "namespaces+landlock",
            Self::B => "landlock",
            Self::C => "none",
        }
    }
}

/// The fence of this machine. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SandboxHost {
    tier: Tier,
    parts: Arc<Parts>,
}

#[derive(Debug)]
struct Parts {
    /// Empty where there is none, and never used then.
    bubblewrap: PathBuf,
    /// A binary whose `main` calls [`take_over`] first.
    helper: PathBuf,
    repositories: RepositoryCache,
    /// The home of the user.
    home: Option<PathBuf>,
}

/// A command that starts inside the fence. Keep it until the command is over, and start it from a thread that
/// lives as long: when that thread ends, the kernel ends the command.
#[derive(Debug)]
pub struct ConfinedLaunch {
    /// What to start instead.
    pub launch: Launch,
    /// Paths that the sandbox could not protect in the folders that the command may write.
    pub notices: Vec<Notice>,
    is_confined: bool,
    /// Removes what had to be put on the disk.
    _placeholders: Placeholders,
}

impl ConfinedLaunch {
    /// Whether there is a fence at all.
    pub fn is_confined(&self) -> bool {
        self.is_confined
    }
}

/// Why a command is not started. Being refused is an ordinary answer.
#[derive(Debug, thiserror::Error)]
pub enum SandboxRefusal {
    /// The machine has nothing to build a fence from.
    #[error(
        "commands cannot be fenced on this machine, so none is run; install bubblewrap 0.8 or later, or boot a \
         kernel with Landlock 4 (Linux 6.7), and see `raddle doctor`; if the machine itself is the fence, give \
         full access"
    )]
    NoSandbox,
    /// The rules ask for more than the second tier can do.
    #[error(
        "{what} needs namespaces, which this machine does not give; install bubblewrap 0.8 or later and allow \
         user namespaces (`raddle doctor` says what is missing, and how to accept less), or ask for less"
    )]
    Unenforceable {
        /// What was asked for.
        what: &'static str,
    },
    /// A path of the rules cannot be used.
    #[error("{} cannot be used by the fence: {why}", path.display())]
    Root {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A folder of the rules is reached through a link, which a command may have put there.
    #[error(
        "{} leads to {}: a link was put on the way there, and a command may have done it; remove the link, or name the \
         other folder",
        path.display(), real.display()
    )]
    Moved {
        /// The path.
        path: PathBuf,
        /// The folder that it leads to.
        real: PathBuf,
    },
    /// A protected name is a link, and links cannot be kept from being replaced.
    #[error(
        "{} is a symbolic link, and the fence cannot keep it as it is; put a folder in its place, or take the \
         name off the protected ones",
        path.display()
    )]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// A worktree names a repository that is not there, so that a command could make it.
    #[error("a .git file names {}, which is not there; mend the worktree (`git worktree repair`)", path.display())]
    Lost {
        /// What is missing.
        path: PathBuf,
    },
    /// The settings of whoever runs the command lie where it may write, and this tier cannot keep them from it.
    #[error(
        "{} is the server's own and lies in a folder that commands may write, and this machine gives no fence that \
         keeps it from them; start in another folder, or install bubblewrap 0.8 or later (see `raddle doctor`)",
        path.display()
    )]
    Own {
        /// What is not the command's.
        path: PathBuf,
    },
    /// The command would start in a folder that it cannot see.
    #[error("the command would start in {}, which it may not read; list it among the readable paths", path.display())]
    Cwd {
        /// The folder.
        path: PathBuf,
    },
    /// The disk did not let the fence be built.
    #[error("the fence cannot be built around {}: {source}", path.display())]
    Disk {
        /// Where.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
}

impl SandboxHost {
    /// A fence of this tier, whether or not it holds on this machine; [`measure`] finds out.
    pub fn new(tier: Tier, bubblewrap: PathBuf, helper: PathBuf) -> Self {
        let parts = Arc::new(Parts {
            bubblewrap,
            helper,
            repositories: RepositoryCache::default(),
            home: git::home(),
        });
        Self { tier, parts }
    }

    /// How strong it is.
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// The bubblewrap that makes its namespaces; nothing in the other tiers.
    pub fn bubblewrap(&self) -> Option<&Path> {
        (self.tier == Tier::A).then_some(&self.parts.bubblewrap)
    }

    /// Paths that could not be protected if a command were started inside `policy`.
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

    /// How this command is started inside `policy`; refuses what the tier cannot enforce.
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

    /// A command that runs beside this one may remove what was just found, so it is looked for again.
    fn wrap_in_namespaces(
        &self,
        launch: &Launch,
        rules: &SandboxRules,
    ) -> Result<ConfinedLaunch, SandboxRefusal> {
        let mut tries = 1;
        loop {
            match self.wrap_once(launch, rules) {
                Err(SandboxRefusal::Disk { source, .. })
                    if source.kind() == io::ErrorKind::NotFound && tries < TRIES =>
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
        let mut seen = self.survey(rules)?;
        // What builds the fence of the next command is not this one's to change.
        let own = [&self.parts.bubblewrap, &self.parts.helper];
        let own = own
            .into_iter()
            .filter_map(|it| std::fs::canonicalize(it).ok());
        seen.protected
            .extend(own.filter(|it| seen.write.iter().any(|root| it.starts_with(root))));
        seen.drop_covered();
        let mounts = Mounts::new(rules, &seen, &self.parts.helper);
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
            inode_pins: mounts.inode_pins(&seen)?,
            processes_max: rules.processes_max,
        };
        let mut args = bubblewrap_args(&rules.network);
        args.extend(mounts.words());
        args.extend([
            "--chdir".into(),
            cwd.clone().into(),
            "--".into(),
            HELPER.into(),
        ]);
        args.extend(helper_args(&plan, launch));
        if args.len() > WORDS_MAX {
            let why = "the paths that the sandbox is made of and the words of the command are more than bubblewrap \
                       takes; shorten the command, or name fewer paths";
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
            notices: seen.notices,
            is_confined: true,
            _placeholders: seen.placeholders,
        })
    }

    fn wrap_in_landlock(
        &self,
        launch: Launch,
        rules: &SandboxRules,
    ) -> Result<ConfinedLaunch, SandboxRefusal> {
        if let Some(what) = needs_namespaces(rules) {
            return Err(SandboxRefusal::Unenforceable { what });
        }
        let seen = self.survey(rules)?;
        let helper = std::fs::canonicalize(&self.parts.helper).unwrap_or_default();
        if let Some(root) = seen.write.iter().find(|root| helper.starts_with(root)) {
            return Err(SandboxRefusal::Root {
                path: root.clone(),
                why: "the program that builds the fence lies in it, and a command could change that",
            });
        }
        let read = match &rules.read {
            ReadScope::All => vec!["/".into()],
            ReadScope::Listed(_) => {
                let system = seen.system.into_iter().map(|(path, _)| path);
                let helper = self.parts.helper.clone();
                system.chain(seen.read).chain([helper]).collect()
            }
        };
        let places = seen.write.iter().map(|it| InodePin::new(it, it));
        let plan = HelperPlan {
            tier: self.tier,
            network: rules.network.clone(),
            read,
            inode_pins: places.collect::<Result<_, _>>()?,
            write: seen.write,
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
            notices: seen.notices,
            is_confined: true,
            _placeholders: seen.placeholders,
        })
    }

    /// Where the helper's own binary is, as a fenced command sees it.
    fn helper_path(&self) -> &Path {
        match self.tier {
            Tier::A => Path::new(HELPER),
            _ => &self.parts.helper,
        }
    }
}

/// What of these rules only a view of the disk of its own can keep.
fn needs_namespaces(rules: &SandboxRules) -> Option<&'static str> {
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

/// Every namespace there is; the view of the disk follows.
fn bubblewrap_args(network: &Network) -> Vec<OsString> {
    let mut words = vec![
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--as-pid-1",
        "--disable-userns",
        "--die-with-parent",
        "--cap-drop",
        "ALL",
    ];
    if *network != Network::Open {
        words.push("--unshare-net");
    }
    words.into_iter().map(OsString::from).collect()
}

fn helper_args(plan: &HelperPlan, launch: &Launch) -> Vec<OsString> {
    let mut words = vec![OsString::from(helper::HELPER_WORD)];
    words.extend(plan.words());
    words.push(launch.program.clone());
    words.extend(launch.args.iter().cloned());
    words
}

#[cfg(test)]
mod tests;
