//! The sandbox of this machine, for all parts of the process that start commands.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tracing::Instrument;

use crate::confinement::{PolicyPath, log_notices};
use crate::egress::{self, EgressDecision, EgressSocket, Proxy, SystemDialer};
use crate::holds::{self, CheckedHolds, FileHolds, HoldConflict, HoldError, WriteClaim};
use crate::{
    ConfinedLaunch, Launch, Measurement, Network, Policy, SandboxHost, SandboxRefusal,
    SandboxRules, Tier,
};

/// Measures the strength of the sandbox on this machine. It may take a while.
#[derive(Clone)]
pub struct MeasureFn(Arc<dyn Fn() -> Measurement + Send + Sync>);

impl MeasureFn {
    /// Wraps a function that measures.
    pub fn new(measure: impl Fn() -> Measurement + Send + Sync + 'static) -> Self {
        Self(Arc::new(measure))
    }
}

impl fmt::Debug for MeasureFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Measure")
    }
}

/// How long a command waits for the measurement, which takes a part of a second.
const MEASURE_TIMEOUT: Duration = Duration::from_secs(10);

/// Wait of a command for a held file before that is logged. Most approved commands have ended by
/// then.
const LOGGED_WAIT: Duration = Duration::from_secs(1);

/// Time between two checks whether the sandbox of a long-running process still fits the holds.
const FIT_CHECK: Duration = Duration::from_millis(250);

/// The sandbox of this machine. It is measured in the background: start-up does not wait for it,
/// commands do.
#[derive(Clone, Debug)]
pub struct SandboxService {
    /// A folder that no sandboxed command sees.
    folder: PathBuf,
    holds: FileHolds,
    measurement: watch::Receiver<Option<Arc<Measurement>>>,
}

/// The confinement that a command gets.
#[derive(Debug)]
pub struct Confinement {
    /// The rules of the sandbox, or full access.
    pub policy: Policy,
    /// The hosts that it may reach through the proxy, if any.
    pub network: Option<egress::EgressRules>,
    /// Whether the operator has accepted that the second tier protects no names in writable
    /// folders. Otherwise the command is refused.
    pub accepts_second_tier: bool,
}

/// Reason why a command is not confined, and so not started.
#[derive(Debug, thiserror::Error)]
pub enum ConfinementError {
    /// The measurement is not complete yet.
    #[error("the sandbox of this machine is still being measured; try again")]
    NotMeasured,
    /// The sandbox refuses the rules.
    #[error(transparent)]
    Refused(#[from] SandboxRefusal),
    /// The file holds cannot be read or written.
    #[error(transparent)]
    Holds(#[from] HoldError),
    /// The socket to the proxy cannot be created.
    #[error("cannot create the socket to the network proxy: {0}")]
    Egress(#[from] io::Error),
}

impl SandboxService {
    /// Starts the measurement. Without a function to measure with there is no sandbox, and no
    /// sandboxed command runs.
    pub fn measure(measure: Option<MeasureFn>, folder: PathBuf) -> Self {
        let (sender, measurement) = watch::channel(None);
        if let Some(MeasureFn(measure)) = measure {
            let work = move || {
                let it = measure();
                let (tier, short_of) = (it.sandbox.tier().name(), &it.short_of);
                tracing::info!(
                    tier,
                    cached = it.cached,
                    ?short_of,
                    "the sandbox is measured"
                );
                sender.send_replace(Some(Arc::new(it)));
            };
            if let Err(error) = std::thread::Builder::new()
                .name("sandbox".to_owned())
                .spawn(work)
            {
                tracing::error!(%error, "cannot measure the sandbox");
            }
        }
        Self {
            holds: FileHolds::of(&folder),
            folder,
            measurement,
        }
    }

    /// Returns the holds on files that must not change while approved commands run outside the
    /// sandbox.
    pub fn holds(&self) -> &FileHolds {
        &self.holds
    }

    /// Returns the measurement, if it is complete.
    pub fn measurement(&self) -> Option<Arc<Measurement>> {
        self.measurement.borrow().clone()
    }

    /// Returns whether the measurement is still running.
    pub fn is_pending(&self) -> bool {
        self.measurement.has_changed().is_ok() && self.measurement.borrow().is_none()
    }

    /// Waits until the sandbox is measured and no file is held that the command may write, and
    /// opens the socket to the proxy if the command needs one.
    pub async fn plan(
        &self,
        launch: Launch,
        confinement: Confinement,
    ) -> Result<LaunchPlan, ConfinementError> {
        self.plan_within(launch, confinement, holds::CLAIM_WAIT)
            .await
    }

    /// Plans a launch as [`Self::plan`] does, with a limit on the wait for held files. A folder
    /// with files that are held for longer becomes read-only: see [`LaunchPlan::conflicts`].
    pub async fn plan_within(
        &self,
        mut launch: Launch,
        confinement: Confinement,
        wait: Duration,
    ) -> Result<LaunchPlan, ConfinementError> {
        let Confinement {
            mut policy,
            network,
            accepts_second_tier,
        } = confinement;
        let Policy::Confined(rules) = &mut policy else {
            return Ok(LaunchPlan {
                measurement: None,
                launch,
                policy,
                egress: None,
                holds: None,
                claim: None,
                conflicts: Vec::new(),
            });
        };
        let mut receiver = self.measurement.clone();
        let measurement = timeout(MEASURE_TIMEOUT, receiver.wait_for(Option::is_some)).await;
        let measurement = measurement.map_err(|_| ConfinementError::NotMeasured)?;
        let Some(measurement) = measurement.ok().and_then(|it| it.clone()) else {
            return Err(SandboxRefusal::NoSandbox.into());
        };
        if measurement.sandbox.tier() != Tier::A {
            if let Some(path) = writable_hidden_path(rules) {
                return Err(SandboxRefusal::Own { path }.into());
            }
            // Only a mount namespace hides paths, and clients learn the limits of the second tier.
            rules.hidden.clear();
            rules.settings.clear();
            if accepts_second_tier {
                rules.protected.clear();
            }
        }
        let (claim, conflicts) = self.claim(&launch, rules, wait).await?;
        let mut proxy_task = None;
        if let Some(network) = network {
            let egress_socket = EgressSocket::open(&self.folder, &egress_name())?;
            rules.network = Network::Proxy(egress_socket.socket());
            for (name, value) in egress::variables() {
                if !launch.env.iter().any(|(set, _)| *set == *name) {
                    launch.env.push((name.into(), value.into()));
                }
            }
            let proxy = Proxy::new(network, Arc::new(SystemDialer), log_decision);
            let serving = tokio::spawn(egress_socket.serve(proxy).in_current_span());
            proxy_task = Some(ProxyTask(serving.abort_handle()));
        }
        Ok(LaunchPlan {
            measurement: Some(measurement),
            launch,
            policy,
            egress: proxy_task,
            holds: Some(self.holds.clone()),
            claim,
            conflicts,
        })
    }

    /// Claims the folders that a command may write.
    async fn claim(
        &self,
        launch: &Launch,
        rules: &mut SandboxRules,
        wait: Duration,
    ) -> Result<(Option<WriteClaim>, Vec<HoldConflict>), HoldError> {
        let words = std::iter::once(&launch.program).chain(&launch.args);
        let words: Vec<_> = words.map(|it| it.to_string_lossy()).collect();
        let about: Arc<str> = words.join(" ").into();
        let started = Instant::now();
        let mut is_logged = false;
        loop {
            let is_last = started.elapsed() >= wait;
            let (holds, about, mut narrowed) = (self.holds.clone(), about.clone(), rules.clone());
            let attempt = holds::blocking(move || {
                let claim = holds.claim_folders(&about, &mut narrowed, is_last)?;
                Ok((claim, narrowed))
            });
            match attempt.await {
                Ok((claim, narrowed)) => {
                    *rules = narrowed;
                    return Ok(claim);
                }
                Err(HoldError::Busy(conflict)) if !is_last => {
                    if !is_logged && started.elapsed() >= LOGGED_WAIT {
                        log_wait(&conflict);
                        is_logged = true;
                    }
                    sleep(holds::POLL_INTERVAL).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// A command whose confinement is decided.
#[derive(Debug)]
pub struct LaunchPlan {
    measurement: Option<Arc<Measurement>>,
    launch: Launch,
    policy: Policy,
    egress: Option<ProxyTask>,
    /// `None` without a sandbox.
    holds: Option<FileHolds>,
    claim: Option<WriteClaim>,
    conflicts: Vec<HoldConflict>,
}

impl LaunchPlan {
    /// Returns the held files that made folders of the command read-only.
    pub fn conflicts(&self) -> &[HoldConflict] {
        &self.conflicts
    }

    /// Builds the sandbox. It reads the disk, and may wait for it. Keep the result until the
    /// command has ended.
    pub fn wrap(self) -> Result<ConfinedProcess, SandboxRefusal> {
        let confined = match self.measurement {
            Some(measurement) => measurement.sandbox.wrap(self.launch, &self.policy)?,
            None => {
                let none = SandboxHost::new(Tier::C, PathBuf::new(), PathBuf::new());
                none.wrap(self.launch, &self.policy)?
            }
        };
        log_notices(&confined.notices);
        Ok(ConfinedProcess {
            confined,
            _egress: self.egress,
            holds: self.holds,
            checked: CheckedHolds::default(),
            claim: self.claim,
            conflicts: self.conflicts,
        })
    }
}

/// A command in its sandbox.
#[derive(Debug)]
pub struct ConfinedProcess {
    /// The launch of the sandbox.
    pub confined: ConfinedLaunch,
    _egress: Option<ProxyTask>,
    /// `None` without a sandbox.
    holds: Option<FileHolds>,
    checked: CheckedHolds,
    claim: Option<WriteClaim>,
    /// The held files that made folders of the command read-only.
    conflicts: Vec<HoldConflict>,
}

impl ConfinedProcess {
    /// Waits until this sandbox no longer fits the holds: an approved command waits for files that
    /// the process may write, or the files around which it may only read are no longer held. A
    /// process that runs for long then ends, and is started again.
    pub async fn outdated(&self) {
        if self.holds.is_none() {
            return std::future::pending().await;
        }
        while self.fits().await {
            sleep(FIT_CHECK).await;
        }
    }

    /// Whether this sandbox fits the holds.
    pub async fn fits(&self) -> bool {
        match &self.holds {
            Some(holds) => {
                holds
                    .fit(&self.checked, self.claim.as_ref(), &self.conflicts)
                    .await
            }
            None => true,
        }
    }
}

/// The proxy for one command.
#[derive(Debug)]
struct ProxyTask(AbortHandle);

impl Drop for ProxyTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns a hidden path that a command could write: the server's own files, on which the
/// confinement depends.
fn writable_hidden_path(rules: &SandboxRules) -> Option<PathBuf> {
    let real = |path: &PathBuf| PolicyPath::of(path).map_or_else(|_| path.clone(), |it| it.real);
    let writable: Vec<PathBuf> = rules.write.iter().chain(&rules.scratch).map(real).collect();
    let hidden = rules.hidden.iter().map(real);
    hidden
        .into_iter()
        .find(|path| writable.iter().any(|root| path.starts_with(root)))
}

/// Returns a name for the folder of one command's proxy socket.
fn egress_name() -> String {
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    format!("raddle-out-{}-{number}", std::process::id())
}

/// Logs the approved command for which a sandboxed one waits, so that the user can end it.
fn log_wait(HoldConflict { path, about }: &HoldConflict) {
    tracing::warn!(
        ?path,
        about,
        "a sandboxed command waits for an approved one that holds a file in a folder which both use; end that one, or \
         the folder becomes read-only to the other"
    );
}

/// Logs the target of a command's request, and nothing of its content.
fn log_decision(it: EgressDecision) {
    let EgressDecision {
        target,
        allowed,
        why,
    } = it;
    tracing::info!(%target, allowed, why, "a command asked for the network");
}
