//! Threads that may wait for a disk, shared out so that one hanging disk does not take them all.

use std::sync::Arc;
use std::time::Duration;

use raddle_rpc::Outgoing;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::wire_error::WireError;

/// How many jobs of clients may run at once, all connections together. The runtime has 512 threads that
/// may wait; the rest of them is for the server's own home.
const CLIENTS_JOBS_MAX: usize = 384;

/// How many of these are kept apart: of them no connection has more than one. So connections whose disks
/// all hang leave something for the others.
const RESERVED_JOBS_MAX: usize = 128;

/// How long a job waits for its turn. Then its caller is told to try again, not left without an answer.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(30);

/// The threads for disks of clients. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct DiskPool {
    common: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
}

impl Default for DiskPool {
    fn default() -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self {
            common: places(CLIENTS_JOBS_MAX - RESERVED_JOBS_MAX),
            reserved: places(RESERVED_JOBS_MAX),
        }
    }
}

/// A share of the threads. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct DiskExecutor {
    jobs: Arc<Semaphore>,
    /// None for the home, which has threads of its own.
    shared: Option<SharedLimits>,
}

/// A connection among the others.
#[derive(Clone, Debug)]
struct SharedLimits {
    all: DiskPool,
    /// Held by the one job that may have a reserved place.
    reserved: Arc<Semaphore>,
}

/// The right to one thread, until it is dropped. Nobody closes a semaphore, so nothing is missing.
#[derive(Debug, Default)]
pub(crate) struct DiskPermit {
    _permits: [Option<OwnedSemaphorePermit>; 3],
}

impl DiskExecutor {
    /// A connection's share, in which so many jobs may run at once.
    pub(crate) fn of_client(all: &DiskPool, jobs_max: usize) -> Self {
        Self {
            jobs: Arc::new(Semaphore::new(jobs_max)),
            shared: Some(SharedLimits {
                all: all.clone(),
                reserved: Arc::new(Semaphore::new(1)),
            }),
        }
    }

    /// The home's share, which no client can take.
    pub(crate) fn of_home(jobs_max: usize) -> Self {
        Self {
            jobs: Arc::new(Semaphore::new(jobs_max)),
            shared: None,
        }
    }

    /// Does the work on a thread when its turn comes.
    pub(crate) async fn run<T, F>(&self, client: &Outgoing, work: F) -> Result<T, WireError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.acquire(client).await?.run(work).await
    }

    /// Waits for a turn. There is none when the client it is for is gone by then, nor when it takes
    /// too long.
    pub(crate) async fn acquire(&self, client: &Outgoing) -> Result<DiskPermit, WireError> {
        tokio::select! {
            biased;
            () = client.when_gone() => Err(WireError::Dropped),
            turn = self.acquire_shared() => turn,
        }
    }

    /// Waits for a turn that is not for one client only.
    pub(crate) async fn acquire_shared(&self) -> Result<DiskPermit, WireError> {
        let turn = timeout(PERMIT_TIMEOUT, self.places()).await;
        turn.map_err(|_| WireError::Overloaded)
    }

    /// A place among the connection's jobs, and one among everybody's.
    async fn places(&self) -> DiskPermit {
        let own = self.jobs.clone().acquire_owned().await.ok();
        let Some(SharedLimits { all, reserved }) = &self.shared else {
            return DiskPermit {
                _permits: [own, None, None],
            };
        };
        let alone = async {
            let mark = reserved.clone().acquire_owned().await.ok();
            (mark, all.reserved.clone().acquire_owned().await.ok())
        };
        tokio::select! {
            biased;
            place = all.common.clone().acquire_owned() => DiskPermit {
                _permits: [own, place.ok(), None],
            },
            (mark, place) = alone => DiskPermit {
                _permits: [own, mark, place],
            },
        }
    }
}

impl DiskPermit {
    /// Does the work on a thread.
    pub(crate) async fn run<T, F>(self, work: F) -> Result<T, WireError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let job = move || {
            let done = work();
            drop(self);
            done
        };
        // An error here is a panic in the work, which the log tells.
        spawn_blocking(job).await.map_err(|_| WireError::Dropped)
    }
}
