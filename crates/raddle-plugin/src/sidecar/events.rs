//! Events of a plugin for clients: the notifications that it sends in the middle of calls.
//!
//! All threads share the process of a plugin. An event that names its call goes to the receiver of
//! that call. Another one is delivered only if all calls without a response have the same receiver:
//! no client receives what the plugin says about the call of another one.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use raddle_core::ThreadId;
use raddle_core::ports::{PluginEvent, PluginEventListener};
use serde_json::Value;

use super::open_calls::{CALL_ID, CallLookupError};
use super::stopped_calls::StoppedCalls;
use crate::message_budget::MessageBudget;

/// Limit: one event of a plugin for clients, as JSON; beyond it, the event is dropped, and the next
/// one says how many were.
const EVENT_BYTES_MAX: usize = 64 << 10;

/// Limit: events of one plugin for clients in a second; beyond it, they are dropped, and the next
/// one says how many were.
const EVENTS_MAX: u32 = 50;

/// Period over which events count.
const PERIOD: Duration = Duration::from_secs(1);

/// The events of one plugin, and the open calls that receive them.
pub(super) struct PluginEvents {
    plugin: String,
    budget: MessageBudget,
    /// Calls that were stopped, and have no response.
    stopped: Arc<StoppedCalls>,
    open: Mutex<OpenReceivers>,
}

#[derive(Default)]
struct OpenReceivers {
    next: u64,
    /// By their number, so the newest is the last.
    receivers: BTreeMap<u64, Arc<CallReceiver>>,
}

/// An open call, and the receiver of its events.
struct CallReceiver {
    /// Id of the request, once it is sent.
    id: OnceLock<String>,
    receiver: EventReceiver,
}

/// The receiver of a call's events.
pub(super) struct EventReceiver {
    pub(super) owner: EventOwner,
    pub(super) listener: PluginEventListener,
}

impl EventReceiver {
    /// Receives the events of a call that a thread makes for itself: no client gets them.
    pub(super) fn without_clients(thread: ThreadId) -> Self {
        Self {
            owner: EventOwner::Thread(thread),
            listener: Box::new(|_| false),
        }
    }
}

/// Owner of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventOwner {
    /// A turn of this thread, whose subscribers receive the events.
    Thread(ThreadId),
    /// A client, which may name a thread.
    Client {
        connection: u64,
        thread: Option<ThreadId>,
    },
}

impl EventOwner {
    /// Returns the thread whose turn made the call.
    pub(super) fn turn_thread(&self) -> Option<ThreadId> {
        match self {
            Self::Thread(thread) => Some(*thread),
            Self::Client { .. } => None,
        }
    }
}

/// The receiver of an event.
enum EventTarget {
    /// No call is open.
    None,
    /// Calls of several owners have no response.
    Several,
    One(Arc<CallReceiver>),
}

impl PluginEvents {
    pub(super) fn new(plugin: String, stopped: Arc<StoppedCalls>) -> Arc<Self> {
        Arc::new(Self {
            plugin,
            budget: MessageBudget::new(EVENTS_MAX, PERIOD),
            stopped,
            open: Mutex::default(),
        })
    }

    fn open_receivers(&self) -> MutexGuard<'_, OpenReceivers> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the receiver of a call, until the result is dropped.
    pub(super) fn open(self: &Arc<Self>, receiver: EventReceiver) -> OpenReceiver {
        let mut open = self.open_receivers();
        let number = open.next;
        open.next += 1;
        let call = Arc::new(CallReceiver {
            id: OnceLock::new(),
            receiver,
        });
        open.receivers.insert(number, call.clone());
        drop(open);
        OpenReceiver {
            events: self.clone(),
            number,
            call,
        }
    }

    /// Delivers a notification of the plugin, without waiting. It fails if the notification names
    /// no open call.
    pub(super) fn send(&self, method: &str, mut params: Value) -> Result<(), CallLookupError> {
        // Clients do not know the calls.
        let name = params.as_object_mut().and_then(|it| it.remove(CALL_ID));
        let call = match self.target(name)? {
            EventTarget::None => return Ok(()),
            EventTarget::Several => {
                self.budget.add_dropped(1);
                return Ok(());
            }
            EventTarget::One(call) => call,
        };
        let Some(dropped) = self.budget.take(Instant::now()) else {
            return Ok(());
        };
        let is_delivered = !is_too_long(method, &params)
            && (call.receiver.listener)(PluginEvent {
                plugin: self.plugin.clone(),
                method: method.to_owned(),
                params,
                dropped,
            });
        if !is_delivered {
            self.budget.add_dropped(dropped + 1);
        }
        Ok(())
    }

    /// Returns the receiver of an event that names this call, or none.
    fn target(&self, name: Option<Value>) -> Result<EventTarget, CallLookupError> {
        let open = self.open_receivers();
        // After a restart of the process ids are used again, and the newest call is the right one.
        let mut calls = open.receivers.values().rev();
        match name {
            None | Some(Value::Null) => {
                let Some(newest) = calls.next() else {
                    return Ok(EventTarget::None);
                };
                let owner = newest.receiver.owner;
                let is_only = calls.all(|it| it.receiver.owner == owner)
                    && self.stopped.all_owners(|it| *it == owner);
                Ok(match is_only {
                    true => EventTarget::One(newest.clone()),
                    false => EventTarget::Several,
                })
            }
            Some(Value::String(id)) => {
                let named = calls.find(|it| it.id.get() == Some(&id));
                let named = named.cloned().map(EventTarget::One);
                named.ok_or_else(|| CallLookupError::unknown(&id))
            }
            Some(_) => Err(CallLookupError::InvalidId),
        }
    }
}

/// The receiver of an open call. Dropping it ends the deliveries.
pub(super) struct OpenReceiver {
    events: Arc<PluginEvents>,
    number: u64,
    call: Arc<CallReceiver>,
}

impl OpenReceiver {
    /// Sets the id of the request, by which events name the call. A call is sent once.
    pub(super) fn set_id(&self, id: &str) {
        let _ = self.call.id.set(id.to_owned());
    }
}

impl Drop for OpenReceiver {
    fn drop(&mut self) {
        self.events.open_receivers().receivers.remove(&self.number);
    }
}

/// Whether an event is longer than the limit. It writes no more than that.
fn is_too_long(method: &str, params: &Value) -> bool {
    let remaining = EVENT_BYTES_MAX.saturating_sub(method.len());
    serde_json::to_writer(ByteLimit { remaining }, params).is_err()
}

/// A writer that fails after a number of bytes.
struct ByteLimit {
    remaining: usize,
}

impl io::Write for ByteLimit {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.remaining.checked_sub(bytes.len()) {
            Some(remaining) => {
                self.remaining = remaining;
                Ok(bytes.len())
            }
            None => Err(io::ErrorKind::FileTooLarge.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    type ReceivedEvents = Arc<Mutex<Vec<PluginEvent>>>;

    /// Opens a call whose receiver collects events.
    fn call(events: &Arc<PluginEvents>, owner: EventOwner) -> (OpenReceiver, ReceivedEvents) {
        let received = ReceivedEvents::default();
        let sink = received.clone();
        let listener: PluginEventListener = Box::new(move |event| {
            sink.lock().expect("events").push(event);
            true
        });
        (events.open(EventReceiver { owner, listener }), received)
    }

    /// Returns the params of the received events, with the number of dropped ones.
    fn taken(received: &ReceivedEvents) -> Vec<(Value, u64)> {
        let events = std::mem::take(&mut *received.lock().expect("events"));
        let pairs = events.into_iter().map(|it| (it.params, it.dropped));
        pairs.collect()
    }

    fn send(events: &PluginEvents, params: Value) {
        assert_eq!(events.send("x", params), Ok(()));
    }

    #[test]
    fn an_event_reaches_the_owner_of_all_open_calls_only() {
        let events = PluginEvents::new("org.example".to_owned(), Arc::default());
        let (first, second) = (ThreadId::mint(), ThreadId::mint());
        let client = |connection| EventOwner::Client {
            connection,
            thread: Some(first),
        };
        // No call is open, so no client misses it.
        send(&events, json!(0));
        let (one, received) = call(&events, EventOwner::Thread(first));
        send(&events, json!(1));
        let (same, received_too) = call(&events, EventOwner::Thread(first));
        send(&events, json!(2));
        assert_eq!(taken(&received), [(json!(1), 0)]);
        assert_eq!(taken(&received_too), [(json!(2), 0)]);
        drop(same);
        for other in [EventOwner::Thread(second), client(1)] {
            let (other, received_by_other) = call(&events, other);
            send(&events, json!(3));
            drop(other);
            assert_eq!(taken(&received_by_other), []);
        }
        assert_eq!(taken(&received), []);
        send(&events, json!(4));
        assert_eq!(taken(&received), [(json!(4), 2)]);
        drop(one);
        let (_one, received) = call(&events, client(1));
        let (_two, received_too) = call(&events, client(2));
        send(&events, json!(5));
        assert_eq!((taken(&received), taken(&received_too)), (vec![], vec![]));
    }

    #[test]
    fn long_events_floods_and_events_without_capacity_are_counted() {
        let events = PluginEvents::new("org.example".to_owned(), Arc::default());
        let owner = EventOwner::Thread(ThreadId::mint());
        let (_call, received) = call(&events, owner);
        // The quotes count too.
        let longest = "x".repeat(EVENT_BYTES_MAX - 3);
        send(&events, json!(format!("{longest}y")));
        assert_eq!(taken(&received), []);
        send(&events, json!(longest));
        assert_eq!(taken(&received), [(json!(longest), 1)]);
        for number in 0..1_000 {
            send(&events, json!(number));
        }
        // A slow test has more than one period.
        let passed = taken(&received);
        assert!((1..1_000).contains(&passed.len()), "{}", passed.len());

        let full = PluginEvents::new("org.example".to_owned(), Arc::default());
        let listener: PluginEventListener = Box::new(|_| false);
        let open = full.open(EventReceiver { owner, listener });
        send(&full, json!(1));
        drop(open);
        let (_call, received) = call(&full, owner);
        send(&full, json!(2));
        assert_eq!(taken(&received), [(json!(2), 1)]);
    }

    #[test]
    fn an_event_that_names_its_call_reaches_the_receiver_of_that_call_only() {
        let events = PluginEvents::new("org.example".to_owned(), Arc::default());
        let (first, second) = (ThreadId::mint(), ThreadId::mint());
        let named = |id: Value| json!({ "n": 1, "call_id": id });
        let unknown = |id: &str| Err(CallLookupError::UnknownId(id.to_owned()));
        assert_eq!(
            events.send("x", named(json!("raddle-1"))),
            unknown("raddle-1")
        );
        let (one, received) = call(&events, EventOwner::Thread(first));
        one.set_id("raddle-1");
        let (two, received_too) = call(&events, EventOwner::Thread(second));
        two.set_id("raddle-2");
        send(&events, named(json!("raddle-1")));
        // Clients do not see the name of the call.
        assert_eq!(taken(&received), [(json!({ "n": 1 }), 0)]);
        assert_eq!(taken(&received_too), []);
        send(&events, named(json!("raddle-2")));
        assert_eq!(taken(&received), []);
        assert_eq!(taken(&received_too), [(json!({ "n": 1 }), 0)]);
        for (id, expected) in [
            (json!("raddle-3"), unknown("raddle-3")),
            (json!(1), Err(CallLookupError::InvalidId)),
            // It names no call, and calls of two threads are open.
            (json!(null), Ok(())),
        ] {
            assert_eq!(events.send("x", named(id)), expected);
            assert_eq!((taken(&received), taken(&received_too)), (vec![], vec![]));
        }
        // It is about a call that has ended, and reaches no other one.
        drop(one);
        assert_eq!(
            events.send("x", named(json!("raddle-1"))),
            unknown("raddle-1")
        );
        assert_eq!(taken(&received_too), []);
    }
}
