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

use crate::confinement::{PolicyPath, log_notices};
use crate::egress::{self, EgressDecision, EgressSocket, Proxy, SystemDialer};
use crate::holds::{self, FileHolds, HoldConflict, HoldError, WriteClaim};
use crate::{
    ConfinedLaunch, Launch, Measurement, Network, Policy, SandboxHost, SandboxRefusal,
    SandboxRules, Tier,
};

/// Finds out how strong the fence of this machine is. It may take a while.
#[derive(Clone)]
pub struct MeasureFn(Arc<dyn Fn() -> Measurement + Send + Sync>);

impl MeasureFn {
    /// What `measure` finds.
    pub fn new(measure: impl Fn() -> Measurement + Send + Sync + 'static) -> Self {
        Self(Arc::new(measure))
    }
}

impl fmt::Debug for MeasureFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Measure")
    }
}

/// How long a command waits for the fence to be measured, which takes a part of a second.
const MEASURE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a command waits for a held file before the log says so. Most approved commands are over by then.
const LOGGED_WAIT: Duration = Duration::from_secs(1);

/// The fence of this machine. It is measured in the background: start-up does not wait for it, commands do.
#[derive(Clone, Debug)]
pub struct SandboxService {
    /// A folder that no fenced command sees.
    folder: PathBuf,
    holds: FileHolds,
    measurement: watch::Receiver<Option<Arc<Measurement>>>,
}

/// What a command is held by.
#[derive(Debug)]
pub struct Confinement {
    /// What it may do.
    pub policy: Policy,
    /// Whom it may reach through the proxy, if anyone.
    pub network: Option<egress::EgressRules>,
    /// Whether whoever runs the server has accepted that the second tier protects no names in what it lets be
    /// written. Without that it is refused.
    pub accepts_second: bool,
}

/// Why a command is not fenced, and so not started.
#[derive(Debug, thiserror::Error)]
pub enum ConfinementError {
    /// It is not known yet how strong the fence is.
    #[error("the fence of this machine is still being measured; try again")]
    NotMeasured,
    /// The fence refuses.
    #[error(transparent)]
    Refused(#[from] SandboxRefusal),
    /// It is not known which files must not change.
    #[error(transparent)]
    Holds(#[from] HoldError),
    /// There is no way out to the network.
    #[error("the way to the network cannot be made: {0}")]
    Egress(#[from] io::Error),
}

impl SandboxService {
    /// Begins to measure. Without anything to measure with there is no fence, and nothing is run in one.
    pub fn measure(measure: Option<MeasureFn>, folder: PathBuf) -> Self {
        let (found, measurement) = watch::channel(None);
        if let Some(MeasureFn(measure)) = measure {
            let work = move || {
                let it = measure();
                let (tier, short_of) = (it.sandbox.tier().name(), &it.short_of);
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
            measurement,
        }
    }

    /// The files that must not change while commands outside the sandbox run with a user's yes.
    pub fn holds(&self) -> &FileHolds {
        &self.holds
    }

    /// What was measured, if it was.
    pub fn measurement(&self) -> Option<Arc<Measurement>> {
        self.measurement.borrow().clone()
    }

    /// Whether it is still being measured.
    pub fn is_pending(&self) -> bool {
        self.measurement.has_changed().is_ok() && self.measurement.borrow().is_none()
    }

    /// Waits until the fence is measured and no file is held that the command may write, and opens the way out
    /// if there is to be one.
    pub async fn plan(
        &self,
        launch: Launch,
        held: Confinement,
    ) -> Result<LaunchPlan, ConfinementError> {
        self.plan_within(launch, held, holds::CLAIM_WAIT).await
    }

    /// The same for a command that waits at most so long for files that are held. A folder with files that are
    /// held for longer it may only read: see [`Ready::conflicts`].
    pub async fn plan_within(
        &self,
        mut launch: Launch,
        held: Confinement,
        wait: Duration,
    ) -> Result<LaunchPlan, ConfinementError> {
        let Confinement {
            mut policy,
            network,
            accepts_second,
        } = held;
        let Policy::Confined(rules) = &mut policy else {
            return Ok(LaunchPlan {
                measurement: None,
                launch,
                policy,
                egress: None,
                claim: None,
                conflicts: Vec::new(),
            });
        };
        let mut measured = self.measurement.clone();
        let measured = timeout(MEASURE_TIMEOUT, measured.wait_for(Option::is_some)).await;
        let measured = measured.map_err(|_| ConfinementError::NotMeasured)?;
        let Some(measured) = measured.ok().and_then(|it| it.clone()) else {
            return Err(SandboxRefusal::NoSandbox.into());
        };
        if measured.sandbox.tier() != Tier::A {
            if let Some(path) = within_reach(rules) {
                return Err(SandboxRefusal::Own { path }.into());
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
            let way = EgressSocket::open(&self.folder, &egress_name())?;
            rules.network = Network::Proxy(way.socket());
            for (name, value) in egress::variables() {
                if !launch.env.iter().any(|(set, _)| *set == *name) {
                    launch.env.push((name.into(), value.into()));
                }
            }
            let proxy = Proxy::new(network, Arc::new(SystemDialer), log_decision);
            let serving = tokio::spawn(way.serve(proxy));
            way_out = Some(ProxyTask(serving.abort_handle()));
        }
        Ok(LaunchPlan {
            measurement: Some(measured),
            launch,
            policy,
            egress: way_out,
            claim,
            conflicts,
        })
    }

    /// The claim of a command to the folders that it may write.
    async fn claim(
        &self,
        launch: &Launch,
        rules: &mut SandboxRules,
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
                    sleep(holds::POLL_INTERVAL).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// A command of which it is known what holds it.
#[derive(Debug)]
pub struct LaunchPlan {
    measurement: Option<Arc<Measurement>>,
    launch: Launch,
    policy: Policy,
    egress: Option<ProxyTask>,
    claim: Option<WriteClaim>,
    conflicts: Vec<HoldConflict>,
}

impl LaunchPlan {
    /// The held files because of which the command may only read folders that it should write.
    pub fn conflicts(&self) -> &[HoldConflict] {
        &self.conflicts
    }

    /// How it is started. This looks at the disk, and may wait for it. Keep what it returns until the command
    /// is over.
    pub fn wrap(self) -> Result<ConfinedProcess, SandboxRefusal> {
        let fenced = match self.measurement {
            Some(measured) => measured.sandbox.wrap(self.launch, &self.policy)?,
            None => {
                let none = SandboxHost::new(Tier::C, PathBuf::new(), PathBuf::new());
                none.wrap(self.launch, &self.policy)?
            }
        };
        log_notices(&fenced.notices);
        Ok(ConfinedProcess {
            confined: fenced,
            _egress: self.egress,
            _claim: self.claim,
        })
    }
}

/// A command inside its fence.
#[derive(Debug)]
pub struct ConfinedProcess {
    /// How it is started.
    pub confined: ConfinedLaunch,
    _egress: Option<ProxyTask>,
    _claim: Option<WriteClaim>,
}

/// The proxy for one command.
#[derive(Debug)]
struct ProxyTask(AbortHandle);

impl Drop for ProxyTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What is hidden although a command may write around it: what commands are held by is there.
fn within_reach(rules: &SandboxRules) -> Option<PathBuf> {
    let real = |path: &PathBuf| PolicyPath::of(path).map_or_else(|_| path.clone(), |it| it.real);
    let writable: Vec<PathBuf> = rules.write.iter().chain(&rules.scratch).map(real).collect();
    let hidden = rules.hidden.iter().map(real);
    hidden
        .into_iter()
        .find(|path| writable.iter().any(|root| path.starts_with(root)))
}

/// A name for the folder of one command's way out.
fn egress_name() -> String {
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
fn log_decision(it: EgressDecision) {
    let EgressDecision {
        target,
        allowed,
        why,
    } = it;
    tracing::info!(%target, allowed, why, "a command asked for the network");
}
