//! The fence of this machine, for everyone in the process who starts commands.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::egress::{self, Noted, Proxy, System, WayOut};
use crate::fence::{PolicyPath, log_notices};
use crate::holds::{self, FileHolds, HoldConflict, HoldError, WriteClaim};
use crate::{Fence, Fenced, Launch, Measured, Network, Policy, Refused, Rules, Tier};

/// Finds out how strong the fence of this machine is. It may take a while.
#[derive(Clone)]
pub struct Measure(Arc<dyn Fn() -> Measured + Send + Sync>);

impl Measure {
    /// What `measure` finds.
    pub fn new(measure: impl Fn() -> Measured + Send + Sync + 'static) -> Self {
        Self(Arc::new(measure))
    }
}

impl fmt::Debug for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Measure")
    }
}

/// How long a command waits for the fence to be measured, which takes a part of a second.
const MEASURED: Duration = Duration::from_secs(10);

/// How long a command waits for a held file before the log says so. Most approved commands are over by then.
const LOGGED_WAIT: Duration = Duration::from_secs(1);

/// The fence of this machine. It is measured in the background: start-up does not wait for it, commands do.
#[derive(Clone, Debug)]
pub struct Fences {
    /// A folder that no fenced command sees.
    folder: PathBuf,
    holds: FileHolds,
    measured: watch::Receiver<Option<Arc<Measured>>>,
}

/// What a command is held by.
#[derive(Debug)]
pub struct Held {
    /// What it may do.
    pub policy: Policy,
    /// Whom it may reach through the proxy, if anyone.
    pub network: Option<egress::Rules>,
    /// Whether whoever runs the server has accepted that the second tier protects no names in what it lets be
    /// written. Without that it is refused.
    pub accepts_second: bool,
}

/// Why a command is not fenced, and so not started.
#[derive(Debug, thiserror::Error)]
pub enum FenceError {
    /// It is not known yet how strong the fence is.
    #[error("the fence of this machine is still being measured; try again")]
    NotMeasured,
    /// The fence refuses.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// It is not known which files must not change.
    #[error(transparent)]
    Holds(#[from] HoldError),
    /// There is no way out to the network.
    #[error("the way to the network cannot be made: {0}")]
    WayOut(#[from] io::Error),
}

impl Fences {
    /// Begins to measure. Without anything to measure with there is no fence, and nothing is run in one.
    pub fn measure(measure: Option<Measure>, folder: PathBuf) -> Self {
        let (found, measured) = watch::channel(None);
        if let Some(Measure(measure)) = measure {
            let work = move || {
                let it = measure();
                let (tier, short_of) = (it.fence.tier().name(), &it.short_of);
                tracing::info!(tier, cached = it.cached, ?short_of, "the fence is measured");
                found.send_replace(Some(Arc::new(it)));
            };
            if let Err(error) = std::thread::Builder::new()
                .name("fence".to_owned())
                .spawn(work)
            {
                tracing::error!(%error, "the fence cannot be measured");
            }
        }
        Self {
            holds: FileHolds::of(&folder),
            folder,
            measured,
        }
    }

    /// The files that must not change while commands outside the sandbox run with a user's yes.
    pub fn holds(&self) -> &FileHolds {
        &self.holds
    }

    /// What was measured, if it was.
    pub fn measured(&self) -> Option<Arc<Measured>> {
        self.measured.borrow().clone()
    }

    /// Whether it is still being measured.
    pub fn is_pending(&self) -> bool {
        self.measured.has_changed().is_ok() && self.measured.borrow().is_none()
    }

    /// Waits until the fence is measured and no file is held that the command may write, and opens the way out
    /// if there is to be one.
    pub async fn ready(&self, launch: Launch, held: Held) -> Result<Ready, FenceError> {
        self.ready_within(launch, held, holds::CLAIM_WAIT).await
    }

    /// The same for a command that waits at most so long for files that are held. A folder with files that are
    /// held for longer it may only read: see [`Ready::conflicts`].
    pub async fn ready_within(
        &self,
        mut launch: Launch,
        held: Held,
        wait: Duration,
    ) -> Result<Ready, FenceError> {
        let Held {
            mut policy,
            network,
            accepts_second,
        } = held;
        let Policy::Fenced(rules) = &mut policy else {
            return Ok(Ready {
                measured: None,
                launch,
                policy,
                way_out: None,
                claim: None,
                conflicts: Vec::new(),
            });
        };
        let mut measured = self.measured.clone();
        let measured = timeout(MEASURED, measured.wait_for(Option::is_some)).await;
        let measured = measured.map_err(|_| FenceError::NotMeasured)?;
        let Some(measured) = measured.ok().and_then(|it| it.clone()) else {
            return Err(Refused::NoFence.into());
        };
        if measured.fence.tier() != Tier::A {
            if let Some(path) = within_reach(rules) {
                return Err(Refused::Own { path }.into());
            }
            // Only a view of the disk of its own hides anything, and clients are told what the second tier
            // does not hold.
            rules.hidden.clear();
            rules.settings.clear();
            if accepts_second {
                rules.protected.clear();
            }
        }
        let (claim, conflicts) = self.claim(&launch, rules, wait).await?;
        let mut way_out = None;
        if let Some(network) = network {
            let way = WayOut::open(&self.folder, &way_name())?;
            rules.network = Network::Proxy(way.socket());
            for (name, value) in egress::variables() {
                if !launch.env.iter().any(|(set, _)| *set == *name) {
                    launch.env.push((name.into(), value.into()));
                }
            }
            let proxy = Proxy::new(network, Arc::new(System), noted);
            let serving = tokio::spawn(way.serve(proxy));
            way_out = Some(Serving(serving.abort_handle()));
        }
        Ok(Ready {
            measured: Some(measured),
            launch,
            policy,
            way_out,
            claim,
            conflicts,
        })
    }

    /// The claim of a command to the folders that it may write.
    async fn claim(
        &self,
        launch: &Launch,
        rules: &mut Rules,
        wait: Duration,
    ) -> Result<(Option<WriteClaim>, Vec<HoldConflict>), HoldError> {
        let words = std::iter::once(&launch.program).chain(&launch.args);
        let words: Vec<_> = words.map(|it| it.to_string_lossy()).collect();
        let about: Arc<str> = words.join(" ").into();
        let begun = Instant::now();
        let mut is_logged = false;
        loop {
            let is_last = begun.elapsed() >= wait;
            let (holds, about, mut narrowed) = (self.holds.clone(), about.clone(), rules.clone());
            let claimed = holds::blocking(move || {
                let claimed = holds.claim_folders(&about, &mut narrowed, is_last)?;
                Ok((claimed, narrowed))
            });
            match claimed.await {
                Ok((claimed, narrowed)) => {
                    *rules = narrowed;
                    return Ok(claimed);
                }
                Err(HoldError::Busy(met)) if !is_last => {
                    if !is_logged && begun.elapsed() >= LOGGED_WAIT {
                        log_wait(&met);
                        is_logged = true;
                    }
                    sleep(holds::LOOK).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// A command of which it is known what holds it.
#[derive(Debug)]
pub struct Ready {
    measured: Option<Arc<Measured>>,
    launch: Launch,
    policy: Policy,
    way_out: Option<Serving>,
    claim: Option<WriteClaim>,
    conflicts: Vec<HoldConflict>,
}

impl Ready {
    /// The held files because of which the command may only read folders that it should write.
    pub fn conflicts(&self) -> &[HoldConflict] {
        &self.conflicts
    }

    /// How it is started. This looks at the disk, and may wait for it. Keep what it returns until the command
    /// is over.
    pub fn wrap(self) -> Result<Inside, Refused> {
        let fenced = match self.measured {
            Some(measured) => measured.fence.wrap(self.launch, &self.policy)?,
            None => {
                let none = Fence::new(Tier::C, PathBuf::new(), PathBuf::new());
                none.wrap(self.launch, &self.policy)?
            }
        };
        log_notices(&fenced.notices);
        Ok(Inside {
            fenced,
            _way_out: self.way_out,
            _claim: self.claim,
        })
    }
}

/// A command inside its fence.
#[derive(Debug)]
pub struct Inside {
    /// How it is started.
    pub fenced: Fenced,
    _way_out: Option<Serving>,
    _claim: Option<WriteClaim>,
}

/// The proxy for one command.
#[derive(Debug)]
struct Serving(AbortHandle);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What is hidden although a command may write around it: what commands are held by is there.
fn within_reach(rules: &Rules) -> Option<PathBuf> {
    let real = |path: &PathBuf| PolicyPath::of(path).map_or_else(|_| path.clone(), |it| it.real);
    let writable: Vec<PathBuf> = rules.write.iter().chain(&rules.scratch).map(real).collect();
    let hidden = rules.hidden.iter().map(real);
    hidden
        .into_iter()
        .find(|path| writable.iter().any(|root| path.starts_with(root)))
}

/// A name for the folder of one command's way out.
fn way_name() -> String {
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    format!("raddle-out-{}-{number}", std::process::id())
}

/// Names the approved command that a sandboxed one waits for, so that its user can end it.
fn log_wait(HoldConflict { path, about }: &HoldConflict) {
    tracing::warn!(
        path = %path.display(),
        about,
        "a sandboxed command waits for an approved one that holds a file in a folder which both use; end that one, or \
         the folder becomes read-only to the other"
    );
}

/// Where a command wanted to go is worth a line; what it said there is not ours to know.
fn noted(it: Noted) {
    let Noted {
        target,
        allowed,
        why,
    } = it;
    tracing::info!(%target, allowed, why, "a command asked for the network");
}
