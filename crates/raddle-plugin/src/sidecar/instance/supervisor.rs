//! The task behind a plugin's process: health, idle time, and its end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use raddle_sandbox::ExitReport;
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::{PluginInstance, RunningPlugin, described, lock};
use crate::process::ProcessGuard;
use crate::stderr_log::StderrLog;

/// Limit: time without a call after which a plugin is stopped; beyond it, the next call starts the
/// plugin again.
const IDLE_MAX: Duration = Duration::from_secs(600);

/// How often the health and the idle time of a plugin are checked.
const HEALTH_INTERVAL: Duration = Duration::from_secs(60);

/// Time for a plugin to answer `plugin/shutdown`.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// Time for a plugin to exit, before it is ended.
pub(super) const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Reason why a process is no longer used.
enum WatchEnd {
    /// It must stop, or nobody uses it.
    Stopped,
    /// It failed, for this reason.
    Failed(String),
}

/// The owner of a plugin's process.
pub(super) struct Supervisor {
    pub(super) instance: Arc<PluginInstance>,
    pub(super) running: Arc<RunningPlugin>,
    pub(super) guard: ProcessGuard,
    pub(super) stderr: StderrLog,
}

impl Supervisor {
    pub(super) async fn run(mut self) {
        match self.watch().await {
            WatchEnd::Stopped => {
                self.running.stop.send_replace(true);
                self.shut_down().await;
                self.instance.log.append("raddle: the plugin is stopped\n");
                self.instance.state().running = None;
            }
            WatchEnd::Failed(reason) => {
                self.guard.end();
                self.guard.ended().await;
                let _ = timeout(EXIT_TIMEOUT, self.stderr.ended()).await;
                self.instance
                    .fail(&format!("{reason}{}", described(&self.stderr)));
            }
        }
        self.running.is_ended.send_replace(true);
    }

    /// Waits until the process must end, or has failed.
    async fn watch(&mut self) -> WatchEnd {
        let Self {
            instance,
            running,
            guard,
            ..
        } = self;
        let mut stop = running.stop.subscribe();
        loop {
            let stopped = async {
                let _ = stop.wait_for(|it| *it).await;
            };
            let pause = async {
                tokio::select! {
                    () = running.check.notified() => {}
                    () = sleep(HEALTH_INTERVAL) => {}
                }
            };
            tokio::select! {
                biased;
                () = stopped => return WatchEnd::Stopped,
                report = guard.ended() => return WatchEnd::Failed(exit_text(report)),
                () = running.session.closed() => {
                    // A process that ends closes its output first.
                    let report = timeout(EXIT_TIMEOUT, guard.ended()).await;
                    return WatchEnd::Failed(exit_text(report.ok().flatten()));
                }
                () = pause => {}
            }
            if let Some(reason) = running.failure.get() {
                return WatchEnd::Failed((*reason).to_owned());
            }
            let calls = &instance.host.calls;
            // A plugin that handles one request at a time is not asked in the middle of it.
            if calls.has_calls() {
                continue;
            }
            if instance.stop_if_idle(running) {
                return WatchEnd::Stopped;
            }
            let count = running.calls.load(Ordering::Relaxed);
            if let Err(error) = instance.check_health(&running.session).await {
                let has_new_calls = running.calls.load(Ordering::Relaxed) != count;
                if !has_new_calls && !calls.has_calls() {
                    return WatchEnd::Failed(format!("plugin/health failed: {error}"));
                }
            }
        }
    }

    /// Asks the process to exit, and ends it if it does not.
    async fn shut_down(&mut self) {
        let session = &self.running.session;
        let params = json!({});
        let shutdown = session.call("plugin/shutdown", &params, SHUTDOWN_TIMEOUT);
        if let Err(error) = shutdown.await {
            tracing::debug!(%error, "a plugin does not answer plugin/shutdown");
        }
        session.close_input();
        if timeout(EXIT_TIMEOUT, self.guard.ended()).await.is_err() {
            self.guard.end();
            self.guard.ended().await;
        }
    }
}

impl PluginInstance {
    /// Begins to stop a process without calls that was not used for long. A call is opened before
    /// it takes the process under the lock, so it is seen here, or it sees that the process ends.
    fn stop_if_idle(&self, running: &RunningPlugin) -> bool {
        let _state = self.state();
        let is_idle = !self.host.calls.has_calls() && lock(&running.last_used).elapsed() > IDLE_MAX;
        if is_idle {
            running.stop.send_replace(true);
        }
        is_idle
    }
}

/// Describes the end of a process.
fn exit_text(report: Option<ExitReport>) -> String {
    match report.and_then(|it| it.status) {
        Some(status) => format!("its process ended with status {}", status.code()),
        None => "its process closed its stdout, or was killed".to_owned(),
    }
}
