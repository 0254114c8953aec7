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
const TURN_PATIENCE: Duration = Duration::from_secs(30);

/// The threads for disks of clients. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Disks {
    common: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
}

impl Default for Disks {
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
pub(crate) struct Disk {
    jobs: Arc<Semaphore>,
    /// None for the home, which has threads of its own.
    among: Option<Among>,
}

/// A connection among the others.
#[derive(Clone, Debug)]
struct Among {
    all: Disks,
    /// Held by the one job that may have a reserved place.
    reserved: Arc<Semaphore>,
}

/// The right to one thread, until it is dropped. Nobody closes a semaphore, so nothing is missing.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    _places: [Option<OwnedSemaphorePermit>; 3],
}

impl Disk {
    /// A connection's share, in which so many jobs may run at once.
    pub(crate) fn of_client(all: &Disks, jobs_max: usize) -> Self {
        Self {
            jobs: Arc::new(Semaphore::new(jobs_max)),
            among: Some(Among {
                all: all.clone(),
                reserved: Arc::new(Semaphore::new(1)),
            }),
        }
    }

    /// The home's share, which no client can take.
    pub(crate) fn of_home(jobs_max: usize) -> Self {
        Self {
            jobs: Arc::new(Semaphore::new(jobs_max)),
            among: None,
        }
    }

    /// Does the work on a thread when its turn comes.
    pub(crate) async fn run<T, F>(&self, client: &Outgoing, work: F) -> Result<T, WireError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.turn(client).await?.run(work).await
    }

    /// Waits for a turn. There is none when the client it is for is gone by then, nor when it takes
    /// too long.
    pub(crate) async fn turn(&self, client: &Outgoing) -> Result<Turn, WireError> {
        tokio::select! {
            biased;
            () = client.when_gone() => Err(WireError::Dropped),
            turn = self.turn_for_anyone() => turn,
        }
    }

    /// Waits for a turn that is not for one client only.
    pub(crate) async fn turn_for_anyone(&self) -> Result<Turn, WireError> {
        let turn = timeout(TURN_PATIENCE, self.places()).await;
        turn.map_err(|_| WireError::Overloaded)
    }

    /// A place among the connection's jobs, and one among everybody's.
    async fn places(&self) -> Turn {
        let own = self.jobs.clone().acquire_owned().await.ok();
        let Some(Among { all, reserved }) = &self.among else {
            return Turn {
                _places: [own, None, None],
            };
        };
        let alone = async {
            let mark = reserved.clone().acquire_owned().await.ok();
            (mark, all.reserved.clone().acquire_owned().await.ok())
        };
        tokio::select! {
            biased;
            place = all.common.clone().acquire_owned() => Turn {
                _places: [own, place.ok(), None],
            },
            (mark, place) = alone => Turn {
                _places: [own, mark, place],
            },
        }
    }
}

impl Turn {
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
