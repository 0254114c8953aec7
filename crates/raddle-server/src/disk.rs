//! Threads that may wait for a disk, shared out so that one hanging disk does not take them all.

use std::sync::Arc;

use raddle_rpc::Outgoing;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::task::spawn_blocking;

use crate::wire_error::WireError;

/// How many jobs of clients may run at once, all connections together. The runtime has 512 threads that
/// may wait; the rest of them is for the server's own home.
const CLIENTS_JOBS_MAX: usize = 384;

static CLIENTS_JOBS: Semaphore = Semaphore::const_new(CLIENTS_JOBS_MAX);

/// A share of the threads. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    jobs: Arc<Semaphore>,
    for_clients: bool,
}

impl Disk {
    /// A connection's share, in which so many jobs may run at once.
    pub(crate) fn of_client(jobs_max: usize) -> Self {
        Self {
            jobs: Arc::new(Semaphore::new(jobs_max)),
            for_clients: true,
        }
    }

    /// The home's share, which no client can take.
    pub(crate) fn of_home(jobs_max: usize) -> Self {
        Self {
            for_clients: false,
            ..Self::of_client(jobs_max)
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
            turn = self.turn() => turn,
        };
        let job = move || {
            let done = work();
            drop(turn);
            done
        };
        // An error here is a panic in the work, which the log tells.
        spawn_blocking(job).await.map_err(|_| WireError::Dropped)
    }

    /// A place among the connection's jobs, and one among everybody's. Nobody closes the semaphores.
    async fn turn(
        &self,
    ) -> (
        Option<OwnedSemaphorePermit>,
        Option<SemaphorePermit<'static>>,
    ) {
        let own = self.jobs.clone().acquire_owned().await.ok();
        let among_all = if self.for_clients {
            CLIENTS_JOBS.acquire().await.ok()
        } else {
            None
        };
        (own, among_all)
    }
}
