//! Work that goes on beside the steps, because it waits for the network and they for the processor.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

/// Work under way, with its own clock.
pub struct Background {
    thread: JoinHandle<(Duration, Result<()>)>,
}

impl Background {
    pub fn start(work: impl FnOnce() -> Result<()> + Send + 'static) -> Self {
        let begun = Instant::now();
        Self {
            thread: thread::spawn(move || {
                let result = work();
                (begun.elapsed(), result)
            }),
        }
    }

    /// Waits for the end. The time is that of the work, not of the waiting.
    pub fn join(self) -> (Duration, Result<()>) {
        self.thread.join().unwrap_or_else(|_| {
            (
                Duration::ZERO,
                Err(anyhow!("the work in the background panicked")),
            )
        })
    }
}
