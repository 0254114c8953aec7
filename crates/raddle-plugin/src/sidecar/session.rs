//! The session with the process of a plugin: calls of both sides, in any order and inside each
//! other.
//!
//! The reader never waits for the writer, nor for a call. A plugin that is blocked on its stdout is
//! therefore always read, whatever waits for its stdin. No call waits for another one to end: beyond
//! the limits it fails at once, because calls inside each other would wait for ever.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use raddle_core::ports::BoxFuture;
use raddle_rpc::{ErrorObject, Frame, Id, LineCodec, code};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::coop::consume_budget;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

use super::byte_stream::{ByteSource, FrameSink};
use super::frame::{self, FrameFault, PluginError, PluginMessage};
use crate::read_pacer::ReadPacer;

/// Limit: one message between the host and a plugin; beyond it, the call fails, and the message of
/// a plugin is dropped.
const FRAME_BYTES_MAX: usize = 4 << 20;

/// Limit: calls of one plugin by the host that are open at a time; beyond it, the call fails.
const HOST_CALLS_MAX: usize = 64;

/// Limit: calls of the host by one plugin that are open at a time; beyond it, the call is answered
/// with an error.
const PLUGIN_CALLS_MAX: usize = 64;

/// Limit: messages that wait for a plugin to read its stdin; beyond it, calls and responses wait
/// outside of the queue.
const QUEUE_FRAMES_MAX: usize = 64;

/// Limit: refusals of calls that wait for a plugin to read its stdin; beyond it, the session ends.
const REFUSALS_MAX: usize = 4_096;

/// Size of a read from the pipe.
const READ_BYTES: usize = 16 << 10;

/// The method that a session answers itself.
const PING: &str = "host/ping";

/// The host's side of a session.
pub(crate) trait HostMethods: Send + Sync + 'static {
    /// Answers a call of the plugin. It may call the plugin meanwhile.
    fn call<'a>(
        &'a self,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Result<Value, ErrorObject>>;

    /// Passes on a notification of the plugin, without waiting.
    fn notify(&self, method: &str, params: Value);

    /// Reports a deviation from the contract, without waiting.
    fn report(&self, fault: FrameFault);

    /// Whether a response is the late one of a call that was stopped.
    fn is_late(&self, _id: &str) -> bool {
        false
    }
}

/// Observer of one call of the plugin.
pub(crate) trait CallObserver: Sync {
    /// Receives the id of the request, before it is sent.
    fn set_id(&self, _id: &str) {}

    /// The call ends without a response, but the plugin has or will read the request. Called under
    /// a lock of the session, before a late response is read.
    fn set_stopped(&self, _id: &str) {}
}

impl CallObserver for () {}

/// Whether a session goes on, without holding it.
pub(crate) struct SessionState(watch::Receiver<bool>);

impl SessionState {
    pub(crate) fn is_over(&self) -> bool {
        self.0.has_changed().is_err() || *self.0.borrow()
    }
}

/// Reason why a call of a plugin has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PluginCallError {
    #[error("{HOST_CALLS_MAX} calls of the plugin are open; try again when one has ended")]
    Busy,
    #[error("the message is longer than {FRAME_BYTES_MAX} bytes; send less")]
    TooLong,
    #[error("the plugin has closed the connection")]
    Closed,
    #[error("the plugin did not respond within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    #[error("the plugin responded with an error: {0}")]
    Failed(PluginError),
}

/// The session with one process. Cheap to clone; it ends when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct PluginSession {
    shared: Arc<SharedState>,
    _tasks: Arc<TaskGuard>,
}

/// Settings of a session.
struct SessionOptions {
    /// Length of the queue of messages to the plugin.
    frames_max: usize,
    /// Pace of the plugin's messages; `None` for no limit.
    pacer: Option<ReadPacer>,
}

/// The reader and the writer of a session.
struct TaskGuard([AbortHandle; 2]);

impl Drop for TaskGuard {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

/// State that the tasks of a session share.
struct SharedState {
    calls: Mutex<OpenHostCalls>,
    /// `None` once the plugin's stdin is closed.
    outgoing: Mutex<Option<OutgoingQueues>>,
    is_closed: watch::Sender<bool>,
    /// Number of bytes that the plugin has sent.
    received: AtomicU64,
}

/// Queues of messages to the plugin.
struct OutgoingQueues {
    /// Calls and responses.
    frames: mpsc::Sender<Vec<u8>>,
    /// Refusals of calls, which are sent first. The reader does not wait, so they need a queue of
    /// their own.
    refusals: mpsc::Sender<Vec<u8>>,
}

/// Calls of the plugin that wait for a response.
#[derive(Default)]
struct OpenHostCalls {
    count: u64,
    is_closed: bool,
    waiting: HashMap<String, oneshot::Sender<Result<Value, PluginError>>>,
}

impl PluginSession {
    /// Starts the tasks of a session.
    pub(crate) fn start(
        source: impl ByteSource,
        sink: impl FrameSink,
        host: Arc<impl HostMethods>,
    ) -> Self {
        let options = SessionOptions {
            frames_max: QUEUE_FRAMES_MAX,
            pacer: Some(ReadPacer::new()),
        };
        Self::with(source, sink, host, options)
    }

    fn with(
        source: impl ByteSource,
        sink: impl FrameSink,
        host: Arc<impl HostMethods>,
        options: SessionOptions,
    ) -> Self {
        let (frames, queue) = mpsc::channel(options.frames_max);
        let (refusals, refused) = mpsc::channel(REFUSALS_MAX);
        let shared = Arc::new(SharedState {
            calls: Mutex::default(),
            outgoing: Mutex::new(Some(OutgoingQueues { frames, refusals })),
            is_closed: watch::Sender::new(false),
            received: AtomicU64::new(0),
        });
        let reader = Reader {
            shared: shared.clone(),
            host,
            served: JoinSet::new(),
            pacer: options.pacer,
        };
        let tasks = [
            tokio::spawn(reader.run(source)).abort_handle(),
            tokio::spawn(write(sink, queue, refused)).abort_handle(),
        ];
        Self {
            shared,
            _tasks: Arc::new(TaskGuard(tasks)),
        }
    }

    /// Calls a method of the plugin. Dropping the future abandons the call.
    pub(crate) async fn call(
        &self,
        method: &str,
        params: &Value,
        limit: Duration,
    ) -> Result<Value, PluginCallError> {
        self.observed_call(method, params, limit, &()).await
    }

    /// Calls a method of the plugin for an observer of the call.
    pub(crate) async fn observed_call(
        &self,
        method: &str,
        params: &Value,
        limit: Duration,
        observer: &dyn CallObserver,
    ) -> Result<Value, PluginCallError> {
        let (entry, response) = CallEntry::open(&self.shared, observer)?;
        observer.set_id(&entry.id);
        let frame = frame::request(&entry.id, method, params);
        if frame.len() > FRAME_BYTES_MAX {
            return Err(PluginCallError::TooLong);
        }
        let answered = async {
            if !self.shared.send(frame).await {
                return Err(PluginCallError::Closed);
            }
            entry.is_sent.store(true, Ordering::Relaxed);
            let outcome = response.await.map_err(|_| PluginCallError::Closed)?;
            outcome.map_err(PluginCallError::Failed)
        };
        let answered = timeout(limit, answered).await;
        answered.unwrap_or(Err(PluginCallError::TimedOut(limit)))
    }

    /// Closes the plugin's stdin, after the messages that wait for it.
    pub(crate) fn close_input(&self) {
        lock(&self.shared.outgoing).take();
    }

    /// Whether the plugin has closed its stdout, or the session has ended.
    pub(crate) fn is_closed(&self) -> bool {
        *self.shared.is_closed.borrow()
    }

    /// Returns the state of the session.
    pub(crate) fn state(&self) -> SessionState {
        SessionState(self.shared.is_closed.subscribe())
    }

    /// Returns the number of bytes that the plugin has sent.
    pub(crate) fn received(&self) -> u64 {
        self.shared.received.load(Ordering::Relaxed)
    }

    /// Waits until the plugin has closed its stdout, or the session has ended.
    pub(crate) async fn closed(&self) {
        // This value holds the sender, so it is open.
        let _ = self.shared.is_closed.subscribe().wait_for(|it| *it).await;
    }
}

impl SharedState {
    /// Queues a frame, and waits while the queue is full. Returns false if stdin is closed.
    async fn send(&self, frame: Vec<u8>) -> bool {
        let frames = lock(&self.outgoing).as_ref().map(|it| it.frames.clone());
        match frames {
            Some(frames) => frames.send(frame).await.is_ok(),
            None => false,
        }
    }

    /// Queues a refusal, unless the queue is full or stdin is closed.
    fn try_refuse(&self, refusal: Vec<u8>) -> bool {
        let outgoing = lock(&self.outgoing);
        let refusals = outgoing.as_ref().map(|it| &it.refusals);
        refusals.is_some_and(|it| it.try_send(refusal).is_ok())
    }

    /// Fails all open calls, and rejects new ones.
    fn close(&self) {
        let mut calls = lock(&self.calls);
        calls.is_closed = true;
        calls.waiting.clear();
        drop(calls);
        lock(&self.outgoing).take();
        self.is_closed.send_replace(true);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An open call of the plugin. Dropping it removes the call.
struct CallEntry<'a> {
    id: String,
    is_sent: AtomicBool,
    shared: &'a SharedState,
    observer: &'a dyn CallObserver,
}

/// Receives the response to a call.
type ResponseReceiver = oneshot::Receiver<Result<Value, PluginError>>;

impl<'a> CallEntry<'a> {
    fn open(
        shared: &'a SharedState,
        observer: &'a dyn CallObserver,
    ) -> Result<(Self, ResponseReceiver), PluginCallError> {
        let mut calls = lock(&shared.calls);
        if calls.is_closed {
            return Err(PluginCallError::Closed);
        }
        if calls.waiting.len() >= HOST_CALLS_MAX {
            return Err(PluginCallError::Busy);
        }
        calls.count += 1;
        // Plugins choose ids of their own, and some search both kinds in one table.
        let id = format!("raddle-{}", calls.count);
        let (sender, receiver) = oneshot::channel();
        calls.waiting.insert(id.clone(), sender);
        drop(calls);
        let entry = Self {
            id,
            is_sent: AtomicBool::new(false),
            shared,
            observer,
        };
        Ok((entry, receiver))
    }
}

impl Drop for CallEntry<'_> {
    fn drop(&mut self) {
        let mut calls = lock(&self.shared.calls);
        let is_waiting = calls.waiting.remove(&self.id).is_some();
        if is_waiting && self.is_sent.load(Ordering::Relaxed) {
            self.observer.set_stopped(&self.id);
        }
    }
}

/// Sends refusals and frames until both queues are closed.
async fn write(
    mut sink: impl FrameSink,
    mut frames: mpsc::Receiver<Vec<u8>>,
    mut refusals: mpsc::Receiver<Vec<u8>>,
) {
    loop {
        let frame = tokio::select! {
            biased;
            Some(refusal) = refusals.recv() => refusal,
            Some(frame) = frames.recv() => frame,
            else => return,
        };
        if sink.send_frame(frame).await.is_err() {
            return;
        }
    }
}

/// The task that reads a plugin's stdout.
struct Reader<H> {
    shared: Arc<SharedState>,
    host: Arc<H>,
    /// Calls of the host by the plugin.
    served: JoinSet<()>,
    /// Pace of the plugin's messages; `None` for no limit.
    pacer: Option<ReadPacer>,
}

/// The plugin sends calls, and reads no responses.
struct NotReading;

impl<H: HostMethods> Reader<H> {
    async fn run(mut self, source: impl ByteSource) {
        self.read(source).await;
        self.shared.close();
    }

    async fn read(&mut self, mut source: impl ByteSource) {
        let mut lines = LineCodec::new(FRAME_BYTES_MAX);
        let mut buffer = vec![0; READ_BYTES];
        loop {
            while let Some(frame) = lines.next_line() {
                // A plugin that sends without pause must not occupy the thread.
                consume_budget().await;
                let handled = match frame {
                    Frame::Message(line) => {
                        self.pace(|it| it.spend_message(&line)).await;
                        self.handle(&line)
                    }
                    Frame::TooLong | Frame::Binary => {
                        self.host.report(FrameFault::TooLong);
                        Ok(())
                    }
                };
                if handled.is_err() {
                    return;
                }
            }
            match source.read_bytes(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(count) => {
                    let received = &self.shared.received;
                    received.fetch_add(count as u64, Ordering::Relaxed);
                    lines.buffer().extend_from_slice(&buffer[..count]);
                    self.pace(|it| it.spend_read(count)).await;
                }
            }
        }
        let rest = lines.buffer();
        if !rest.trim_ascii().is_empty() {
            for fault in frame::not_a_message(rest).faults {
                self.host.report(fault);
            }
        }
    }

    /// Adds a cost to the pace, and waits until more may be read.
    async fn pace(&mut self, spend: impl FnOnce(&mut ReadPacer)) {
        if let Some(pacer) = &mut self.pacer {
            spend(pacer);
            pacer.wait().await;
        }
    }

    fn handle(&mut self, line: &[u8]) -> Result<(), NotReading> {
        let parsed = frame::parse(line);
        for fault in parsed.faults {
            self.host.report(fault);
        }
        match parsed.message {
            Some(PluginMessage::Request { id, method, params }) => self.serve(id, method, params),
            Some(PluginMessage::Notification { method, params }) => {
                self.host.notify(&method, params);
                Ok(())
            }
            Some(PluginMessage::Response { id, outcome }) => {
                self.settle(&id, outcome);
                Ok(())
            }
            None => match parsed.refusal {
                Some(refusal) => self.refuse(refusal),
                None => Ok(()),
            },
        }
    }

    /// Starts to answer a call of the host.
    fn serve(&mut self, id: Id, method: String, params: Value) -> Result<(), NotReading> {
        while self.served.try_join_next().is_some() {}
        if self.served.len() >= PLUGIN_CALLS_MAX {
            self.host.report(FrameFault::TooManyCalls);
            let message = format!(
                "{PLUGIN_CALLS_MAX} calls of the host are open; call again when one has ended"
            );
            let error = ErrorObject::new(code::OVERLOADED, message);
            return self.refuse(frame::response(&id, &Err(error)));
        }
        let (shared, host) = (self.shared.clone(), self.host.clone());
        self.served.spawn(async move {
            let outcome = match method.as_str() {
                PING => {
                    drop(params);
                    Ok(json!({ "pong": true }))
                }
                method => host.call(method, params).await,
            };
            let mut frame = frame::response(&id, &outcome);
            if frame.len() > FRAME_BYTES_MAX {
                let message = format!("the result is longer than {FRAME_BYTES_MAX} bytes");
                let error = ErrorObject::new(code::INTERNAL, message);
                frame = frame::response(&id, &Err(error));
            }
            shared.send(frame).await;
        });
        Ok(())
    }

    /// Sends an error at once. The reader must not wait, so a plugin that reads no responses to very
    /// many calls loses its session.
    fn refuse(&self, refusal: Vec<u8>) -> Result<(), NotReading> {
        match self.shared.try_refuse(refusal) {
            true => Ok(()),
            false => Err(NotReading),
        }
    }

    /// Passes a response to the call that waits for it.
    fn settle(&self, id: &Id, outcome: Result<Value, PluginError>) {
        let waiting = match id {
            Id::String(id) => lock(&self.shared.calls).waiting.remove(&**id),
            Id::Integer(_) => None,
        };
        match waiting {
            // The caller may have gone.
            Some(sender) => drop(sender.send(outcome)),
            None => {
                let id = id.to_string();
                if !self.host.is_late(&id) {
                    self.host.report(FrameFault::UnknownId(id));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
