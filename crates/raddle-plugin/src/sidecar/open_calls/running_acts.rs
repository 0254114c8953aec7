//! The acts of a call that run: they end with the call.

use std::sync::Arc;
use std::time::Duration;

use raddle_core::ports::BoxFuture;
use tokio::sync::watch;
use tokio::time::timeout;

/// Wait of a call's end for its acts. A command that is killed needs some time to end.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// The acts of one call.
pub(super) struct RunningActs(watch::Sender<ActState>);

#[derive(Clone, Copy, Default)]
struct ActState {
    /// Whether the call has ended.
    is_ended: bool,
    running: usize,
}

impl RunningActs {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(watch::Sender::new(ActState::default())))
    }

    /// Begins an act, unless the call has ended.
    pub(super) fn begin(self: &Arc<Self>) -> Option<RunningAct> {
        let has_begun = self.0.send_if_modified(|it| {
            it.running += usize::from(!it.is_ended);
            !it.is_ended
        });
        has_begun.then(|| RunningAct(self.clone()))
    }

    /// Stops all acts, and begins no others.
    pub(super) fn stop(&self) {
        self.0.send_modify(|it| it.is_ended = true);
    }

    /// Waits until no act runs.
    pub(super) async fn ended(&self) {
        let mut state = self.0.subscribe();
        let ended = state.wait_for(|it| it.running == 0);
        if timeout(END_TIMEOUT, ended).await.is_err() {
            tracing::warn!("an act of a plugin does not end with its call");
        }
    }
}

/// An act that runs. Dropping it ends the act.
pub(in crate::sidecar) struct RunningAct(Arc<RunningActs>);

impl RunningAct {
    /// Completes once the call has ended.
    pub(in crate::sidecar) fn stopped(&self) -> BoxFuture<'static, ()> {
        let mut state = self.0.0.subscribe();
        // Without a sender there is no call.
        Box::pin(async move { drop(state.wait_for(|it| it.is_ended).await) })
    }
}

impl Drop for RunningAct {
    fn drop(&mut self) {
        self.0.0.send_modify(|it| it.running -= 1);
    }
}
