//! Interrupts that have arrived, and that still wait for earlier requests about their thread.

use std::sync::Arc;

use raddle_core::ThreadId;
use tokio::sync::watch;

/// Threads with waiting interrupts, once for each interrupt.
#[derive(Debug)]
pub(crate) struct WaitingInterrupts {
    threads: watch::Sender<Vec<ThreadId>>,
}

/// An interrupt on its way to its thread, until it is dropped.
#[derive(Debug)]
pub struct WaitingInterrupt {
    thread: ThreadId,
    waiting: Arc<WaitingInterrupts>,
}

impl WaitingInterrupts {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            threads: watch::Sender::new(Vec::new()),
        })
    }

    /// Adds an interrupt, until the result is dropped.
    pub(crate) fn add(self: &Arc<Self>, thread: ThreadId) -> WaitingInterrupt {
        self.threads.send_modify(|it| it.push(thread));
        WaitingInterrupt {
            thread,
            waiting: self.clone(),
        }
    }

    /// Waits until there is an interrupt of this thread.
    pub(crate) async fn any_of(&self, thread: ThreadId) {
        let mut threads = self.threads.subscribe();
        // It fails only without a sender, and `self` is one.
        let _ = threads.wait_for(|it| it.contains(&thread)).await;
    }
}

impl Drop for WaitingInterrupt {
    fn drop(&mut self) {
        self.waiting.threads.send_modify(|threads| {
            if let Some(at) = threads.iter().position(|it| *it == self.thread) {
                threads.swap_remove(at);
            }
        });
    }
}
