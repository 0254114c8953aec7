//! Blocking threads for disk access, shared out so that one hanging disk does not take them all.

use std::sync::Arc;
use std::time::Duration;

use raddle_rpc::Outgoing;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tracing::Span;

use crate::wire_error::WireError;

/// Limit: disk jobs of all connections that run at a time; beyond it, further jobs wait in order.
///
/// The runtime has 512 blocking threads; the rest of them is for the server's own home.
const CLIENTS_JOBS_MAX: usize = 384;

/// Limit: disk jobs reserved in addition, at most one for each connection; beyond it, further jobs
/// wait in order.
///
/// The part of these that is reserved: a connection holds at most one of them. So connections whose
/// disks all hang leave something for the others.
const RESERVED_JOBS_MAX: usize = 128;

/// Limit: time a disk job waits for a permit; beyond it, the server rejects the request with -32001
/// and says when to retry.
///
/// Then the client gets an overload error, which it can retry.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(30);

/// The blocking threads for the disks of clients. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct DiskPool {
    common: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
}

impl Default for DiskPool {
    fn default() -> Self {
        let semaphore = |count| Arc::new(Semaphore::new(count));
        Self {
            common: semaphore(CLIENTS_JOBS_MAX - RESERVED_JOBS_MAX),
            reserved: semaphore(RESERVED_JOBS_MAX),
        }
    }
}

/// A share of the blocking threads. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct DiskExecutor {
    jobs: Arc<Semaphore>,
    /// None for the home, which has threads of its own.
    shared: Option<SharedLimits>,
}

/// Limits that a connection shares with the others.
#[derive(Clone, Debug)]
struct SharedLimits {
    all: DiskPool,
    /// Held by the one job that may use a reserved permit.
    reserved: Arc<Semaphore>,
}

/// The right to one thread, until it is dropped. No code closes a semaphore, so a permit is never
/// missing.
#[derive(Debug, Default)]
pub(crate) struct DiskPermit {
    _permits: [Option<OwnedSemaphorePermit>; 3],
}

impl DiskExecutor {
    /// Returns a connection's share, in which this many jobs may run at once.
    pub(crate) fn of_client(all: &DiskPool, jobs_max: usize) -> Self {
        Self {
            jobs: Arc::new(Semaphore::new(jobs_max)),
            shared: Some(SharedLimits {
                all: all.clone(),
                reserved: Arc::new(Semaphore::new(1)),
            }),
        }
    }

    /// Returns the home's share, which no client can use up.
    pub(crate) fn of_home(jobs_max: usize) -> Self {
        Self {
            jobs: Arc::new(Semaphore::new(jobs_max)),
            shared: None,
        }
    }

    /// Runs the work on a blocking thread when a permit is free.
    pub(crate) async fn run<T, F>(&self, client: &Outgoing, work: F) -> Result<T, WireError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.acquire(client).await?.run(work).await
    }

    /// Waits for a permit. Fails when the client disconnects first, and on timeout.
    pub(crate) async fn acquire(&self, client: &Outgoing) -> Result<DiskPermit, WireError> {
        tokio::select! {
            biased;
            () = client.when_gone() => Err(WireError::Dropped),
            permit = self.acquire_shared() => permit,
        }
    }

    /// Waits for a permit that does not depend on one client.
    pub(crate) async fn acquire_shared(&self) -> Result<DiskPermit, WireError> {
        let permit = timeout(PERMIT_TIMEOUT, self.permits()).await;
        permit.map_err(|_| WireError::Overloaded)
    }

    /// Acquires a permit of the connection's own, and one of the shared ones.
    async fn permits(&self) -> DiskPermit {
        let own = self.jobs.clone().acquire_owned().await.ok();
        let Some(SharedLimits { all, reserved }) = &self.shared else {
            return DiskPermit {
                _permits: [own, None, None],
            };
        };
        let from_reserved = async {
            let guard = reserved.clone().acquire_owned().await.ok();
            (guard, all.reserved.clone().acquire_owned().await.ok())
        };
        tokio::select! {
            biased;
            shared_permit = all.common.clone().acquire_owned() => DiskPermit {
                _permits: [own, shared_permit.ok(), None],
            },
            (guard, shared_permit) = from_reserved => DiskPermit {
                _permits: [own, guard, shared_permit],
            },
        }
    }
}

impl DiskPermit {
    /// Runs the work on a blocking thread.
    pub(crate) async fn run<T, F>(self, work: F) -> Result<T, WireError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let span = Span::current();
        let job = move || {
            let output = span.in_scope(work);
            drop(self);
            output
        };
        // An error here is a panic in the work, which is logged.
        spawn_blocking(job).await.map_err(|_| WireError::Dropped)
    }
}
