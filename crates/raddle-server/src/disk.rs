//! Threads that may wait for a disk, shared out so that one hanging disk does not take them all.

use std::sync::Arc;

use raddle_rpc::Outgoing;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::wire_error::WireError;

/// A share of the threads. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    jobs: Arc<Semaphore>,
}

impl Disk {
    /// A share in which so many jobs may run at once.
    pub(crate) fn new(jobs_max: usize) -> Self {
        Self {
            jobs: Arc::new(Semaphore::new(jobs_max)),
        }
    }

    /// Does the work on a thread when its turn comes. When the client it is for is gone by then, the
    /// work is dropped undone.
    pub(crate) async fn run<T, F>(&self, client: &Outgoing, work: F) -> Result<T, WireError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let turn = tokio::select! {
            biased;
            () = client.when_gone() => return Err(WireError::Dropped),
            turn = self.jobs.clone().acquire_owned() => turn,
        };
        let job = move || {
            let done = work();
            drop(turn);
            done
        };
        // An error here is a panic in the work, which the log tells.
        spawn_blocking(job).await.map_err(|_| WireError::Dropped)
    }
}
