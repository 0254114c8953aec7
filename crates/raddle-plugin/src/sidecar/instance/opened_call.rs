//! A call of a plugin from its start to its end, also if it is stopped.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use raddle_core::ports::BoxFuture;
use serde_json::Value;

use super::{PluginCall, PluginToolError, RunningPlugin};
use crate::sidecar::events::{EventOwner, OpenReceiver};
use crate::sidecar::host::PluginHost;
use crate::sidecar::open_calls::OpenCallGuard;
use crate::sidecar::session::CallObserver;
use crate::sidecar::stopped_calls::{StoppedCall, StoppedCalls};

/// A call that has no result. Dropping it stops the call.
pub(super) struct OpenedCall {
    method: String,
    arguments: Value,
    limit: Duration,
    owner: EventOwner,
    open: OpenCallGuard,
    events: OpenReceiver,
    calls_stopped: Arc<StoppedCalls>,
    /// Completes once the call must stop.
    pub(super) stopped: BoxFuture<'static, ()>,
}

impl OpenedCall {
    /// Opens a call. From now on, calls of the host may belong to it.
    pub(super) fn new(host: &PluginHost, call: PluginCall) -> Self {
        Self {
            method: call.method,
            arguments: call.arguments,
            limit: call.limit,
            owner: call.events.owner,
            open: host.calls.add(call.user, call.acts, call.answer),
            events: host.events.open(call.events),
            calls_stopped: host.calls.stopped.clone(),
            stopped: call.stopped,
        }
    }

    /// Sends the request, and waits for the response or the end of the call.
    pub(super) async fn answered(
        mut self,
        running: &RunningPlugin,
    ) -> Result<Value, PluginToolError> {
        running.calls.fetch_add(1, Ordering::Relaxed);
        let received = running.session.received();
        let observer = RequestObserver {
            open: &self.open,
            events: &self.events,
            owner: self.owner,
            stopped: &self.calls_stopped,
            running,
        };
        let (method, arguments) = (&self.method, &self.arguments);
        let session = &running.session;
        let outcome = tokio::select! {
            biased;
            outcome = session.observed_call(method, arguments, Duration::MAX, &observer) => {
                outcome.map_err(PluginToolError::Call)
            }
            () = &mut self.stopped => Err(PluginToolError::Stopped),
            () = self.open.timeout(self.limit) => Err(PluginToolError::TimedOut(self.limit)),
        };
        // The plugin may have a call of the host open, whose effects end here. Its health is checked
        // only while no call is open.
        let Self { open, events, .. } = self;
        open.end().await;
        drop(events);
        running.touch();
        if matches!(outcome, Err(PluginToolError::TimedOut(_))) {
            // A process that hangs is ended, so that it costs no other call.
            match session.received() == received {
                true => {
                    running.fail("it did not answer a call in time, and sent nothing meanwhile")
                }
                false => running.check.notify_one(),
            }
        }
        outcome
    }
}

/// Observer of the request of a call.
struct RequestObserver<'a> {
    open: &'a OpenCallGuard,
    events: &'a OpenReceiver,
    owner: EventOwner,
    stopped: &'a StoppedCalls,
    running: &'a RunningPlugin,
}

impl CallObserver for RequestObserver<'_> {
    fn set_id(&self, id: &str) {
        self.open.set_id(id);
        self.events.set_id(id);
    }

    fn set_stopped(&self, id: &str) {
        let has_too_many = self.stopped.add(StoppedCall {
            id: id.to_owned(),
            owner: self.owner,
            session: self.running.session.state(),
        });
        if has_too_many {
            self.running
                .fail("it answers none of many calls that were stopped");
        }
    }
}

#[cfg(test)]
mod tests;
