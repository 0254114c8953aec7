//! The test of a plugin against the contract: health, the declared methods, shutdown, exit.

mod test_host;
mod violation;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use raddle_core::ports::PluginActs;
use raddle_sandbox::{ExitReport, ExitStatus};
use serde_json::{Value, json};
use tokio::time::timeout;

use self::test_host::{Findings, TestHost};
pub use self::violation::ContractViolation;
pub(super) use self::violation::of_health as health_violation;
use super::inspection::InspectionError;
use super::launch;
use super::manifest::Manifest;
use super::open_calls::OpenCallGuard;
use super::session::{CallObserver, PluginCallError, PluginSession};
use super::skills;
use crate::process::{ProcessGuard, ProcessStarter, SandboxedProcess};
use crate::stderr_log::{StderrLog, StderrOrigin};

/// Settings of a test.
pub struct PluginTestOptions {
    /// Whether permissions that the manifest names are approved.
    pub approves: bool,
    /// Time for each response, and for the exit.
    pub limit: Duration,
    /// Folder for the files of the host.
    pub home: PathBuf,
    /// Acts in a workspace of the test.
    pub acts: Arc<dyn PluginActs>,
}

/// Result of the test of a plugin.
#[derive(Debug, Default)]
pub struct PluginTest {
    /// Id and version of the manifest; `None` if that cannot be used.
    pub identity: Option<(String, String)>,
    /// Keys of the manifest that are not known.
    pub warnings: Vec<String>,
    /// Calls of both sides, in their order.
    pub steps: Vec<TestStep>,
    /// Deviations from the contract.
    pub violations: Vec<ContractViolation>,
    /// Last lines of stderr.
    pub stderr: String,
}

/// A call of one side, and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestStep {
    /// Method, and for an approval the permission.
    pub name: String,
    /// Outcome in a few words.
    pub outcome: String,
}

/// Tests the plugin in this folder, and ends its process.
pub async fn test_plugin(
    starter: &ProcessStarter,
    folder: &Path,
    options: PluginTestOptions,
) -> PluginTest {
    let read_from = folder.to_owned();
    let read = move || -> Result<Manifest, InspectionError> {
        let manifest = Manifest::read(&read_from)?;
        skills::read(&read_from, &manifest)?;
        Ok(manifest)
    };
    let read = tokio::task::spawn_blocking(read).await;
    let manifest = match read {
        Ok(Ok(manifest)) => Arc::new(manifest),
        Ok(Err(error)) => return not_started(violation::manifest_invalid(&error)),
        Err(error) => return not_started(violation::start_failed(&error)),
    };
    let host = Arc::new(TestHost::new(manifest.clone(), &options));
    let mut stderr_end = String::new();
    let network = match options.approves {
        true => manifest.network_permissions().cloned().collect(),
        false => Vec::new(),
    };
    match launch::start(starter, folder, &manifest, network, Vec::new()).await {
        Ok(launched) => {
            let SandboxedProcess {
                input,
                stdout,
                stderr,
                guard,
                ..
            } = launched.process;
            let id = manifest.id.clone();
            let mut stderr = StderrLog::follow(StderrOrigin::Plugin(None), id, stderr);
            let run = TestRun {
                session: PluginSession::start(stdout, input, host.clone()),
                host: &host,
                guard,
                limit: options.limit,
            };
            run.finish().await;
            let _ = timeout(options.limit, stderr.ended()).await;
            stderr_end = stderr.last_lines();
        }
        Err(error) => host.violate(violation::start_failed(&error)),
    }
    let Findings {
        steps, violations, ..
    } = std::mem::take(&mut *host.findings());
    PluginTest {
        identity: Some((manifest.id.clone(), manifest.version.clone())),
        warnings: manifest.warnings.clone(),
        steps,
        violations,
        stderr: stderr_end,
    }
}

fn not_started(violation: ContractViolation) -> PluginTest {
    PluginTest {
        violations: vec![violation],
        ..PluginTest::default()
    }
}

/// A test whose plugin runs.
struct TestRun<'a> {
    session: PluginSession,
    host: &'a TestHost,
    guard: ProcessGuard,
    limit: Duration,
}

/// The plugin no longer answers, so the rest of the test is left out.
struct Unresponsive;

impl TestRun<'_> {
    async fn finish(mut self) {
        let is_shut_down = self.converse().await.is_ok();
        self.session.close_input();
        let report = match is_shut_down {
            true => self.exited().await,
            false => None,
        };
        if report.is_none() {
            self.guard.end();
            self.guard.ended().await;
        }
        // All processes have ended, and so does their output.
        let _ = timeout(self.limit, self.session.closed()).await;
    }

    /// Calls health, the methods with an example, and shutdown.
    async fn converse(&mut self) -> Result<(), Unresponsive> {
        let health = self.call("plugin/health", &json!({})).await?;
        let health = health.and_then(|it| violation::of_health(&self.host.manifest, &it));
        if let Some(violation) = health {
            self.host.violate(violation);
        }
        let manifest = self.host.manifest.clone();
        for method in &manifest.methods {
            if let Some(example) = &method.example {
                self.call(&method.name, example).await?;
            }
        }
        let shutdown = self.call("plugin/shutdown", &json!({})).await?;
        if let Some(violation) = shutdown.and_then(|it| violation::of_shutdown(&it)) {
            self.host.violate(violation);
        }
        Ok(())
    }

    /// Calls a method. Returns its result, or `None` after an error response.
    async fn call(&mut self, method: &str, params: &Value) -> Result<Option<Value>, Unresponsive> {
        let denied = self.host.findings().denied;
        let open = self.host.open_call(method);
        let may_need_host = open.is_some() && self.host.denies_hosts();
        let answered = self
            .session
            .observed_call(method, params, self.limit, &open);
        let outcome = answered.await;
        if let Some(open) = open {
            open.end().await;
        }
        let text = match &outcome {
            Ok(_) => "ok".to_owned(),
            Err(error) => error.to_string(),
        };
        self.host.step(method.to_owned(), text);
        match outcome {
            Ok(result) => Ok(Some(result)),
            // An error is a proper response to a call that needs a permission.
            Err(PluginCallError::Failed(_))
                if may_need_host || self.host.findings().denied > denied =>
            {
                Ok(None)
            }
            Err(PluginCallError::Closed) => {
                let report = timeout(self.limit, self.guard.ended()).await.ok().flatten();
                let status = report.and_then(|it| it.status);
                self.host.violate(violation::exited_early(method, status));
                Err(Unresponsive)
            }
            Err(error @ PluginCallError::TimedOut(_)) => {
                self.host.violate(violation::no_response(method, &error));
                Err(Unresponsive)
            }
            Err(error) => {
                self.host.violate(violation::call_failed(method, &error));
                Ok(None)
            }
        }
    }

    /// Waits for the exit after a shutdown; `None` if that takes too long.
    async fn exited(&mut self) -> Option<ExitReport> {
        let report = timeout(self.limit, self.guard.ended()).await.ok().flatten();
        match &report {
            None => self.host.violate(violation::exit_timeout(self.limit)),
            Some(report) => {
                if report.status != Some(ExitStatus::Exit(0)) {
                    self.host.violate(violation::exit_status(report.status));
                }
                if report.killed > 0 {
                    self.host.violate(violation::processes_left(report));
                }
            }
        }
        report
    }
}

impl CallObserver for Option<OpenCallGuard> {
    fn set_id(&self, id: &str) {
        if let Some(open) = self {
            open.set_id(id);
        }
    }
}
