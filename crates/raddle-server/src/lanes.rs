//! Lanes: requests of one resource run in the order they came; the rest run beside each other.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raddle_protocol::table::{Lane, Resource};

/// All lanes that have someone in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lanes {
    lanes: Arc<Mutex<HashMap<Key, Queue>>>,
}

/// A resource; those that belong to a connection carry its number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    connection: u64,
    resource: Resource,
}

#[derive(Default)]
struct Queue {
    /// Who is inside: readers, or one writer.
    inside: Inside,
    waiting: VecDeque<Waiting>,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {} waiting", self.inside, self.waiting.len())
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Inside {
    #[default]
    Nobody,
    Readers(usize),
    Writer,
}

struct Waiting {
    shared: bool,
    job: Job,
}

type Job = Box<dyn FnOnce(Option<Pass>) + Send>;

/// The right to be in a lane; dropping it lets the next one in.
#[derive(Debug)]
pub(crate) struct Pass {
    lanes: Lanes,
    key: Key,
}

impl Lanes {
    /// Runs the job when its lane lets it: at once if the lane is free.
    pub(crate) fn enter<F>(&self, lane: Lane, connection: u64, job: F)
    where
        F: FnOnce(Option<Pass>) + Send + 'static,
    {
        let (resource, shared) = match lane {
            Lane::Free => return job(None),
            Lane::Shared(resource) => (resource, true),
            Lane::Exclusive(resource) => (resource, false),
        };
        let connection = match resource {
            Resource::Config | Resource::Account | Resource::Thread(_) | Resource::Path(_) => 0,
            Resource::Process(_) | Resource::Watch(_) | Resource::Search(_) => connection,
        };
        let key = Key {
            connection,
            resource,
        };
        let mut lanes = self.lock();
        let queue = lanes.entry(key.clone()).or_default();
        if queue.waiting.is_empty() && queue.inside.admits(shared) {
            queue.inside.add(shared);
            drop(lanes);
            job(Some(Pass {
                lanes: self.clone(),
                key,
            }));
        } else {
            queue.waiting.push_back(Waiting {
                shared,
                job: Box::new(job),
            });
        }
    }

    fn leave(&self, key: &Key) {
        let mut admitted = Vec::new();
        let mut lanes = self.lock();
        let Some(queue) = lanes.get_mut(key) else {
            return;
        };
        queue.inside.remove();
        while let Some(next) = queue.waiting.front() {
            if !queue.inside.admits(next.shared) {
                break;
            }
            queue.inside.add(next.shared);
            admitted.extend(queue.waiting.pop_front());
        }
        if queue.inside == Inside::Nobody {
            lanes.remove(key);
        }
        drop(lanes);
        for Waiting { job, .. } in admitted {
            let pass = Pass {
                lanes: self.clone(),
                key: key.clone(),
            };
            // On a task of its own: a long queue of quick jobs must not nest.
            tokio::spawn(async move { job(Some(pass)) });
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Queue>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    fn admits(self, shared: bool) -> bool {
        match self {
            Self::Nobody => true,
            Self::Readers(_) => shared,
            Self::Writer => false,
        }
    }

    fn add(&mut self, shared: bool) {
        *self = match (*self, shared) {
            (Self::Readers(count), true) => Self::Readers(count + 1),
            (_, true) => Self::Readers(1),
            (_, false) => Self::Writer,
        };
    }

    fn remove(&mut self) {
        *self = match *self {
            Self::Readers(count) if count > 1 => Self::Readers(count - 1),
            _ => Self::Nobody,
        };
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.lanes.leave(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    #[tokio::test]
    async fn readers_share_and_writers_wait_their_turn() {
        let lanes = Lanes::default();
        let (sender, mut entered) = mpsc::unbounded_channel();
        let enter = |name: &'static str, shared: bool| {
            let sender = sender.clone();
            let lane = if shared {
                Lane::Shared(Resource::Config)
            } else {
                Lane::Exclusive(Resource::Config)
            };
            lanes.enter(lane, 1, move |pass| {
                let _ = sender.send((name, pass));
            });
        };
        enter("read 1", true);
        enter("read 2", true);
        enter("write 3", false);
        enter("read 4", true);
        enter("write 5", false);

        let mut order = Vec::new();
        let first = entered.recv().await.expect("read 1");
        let second = entered.recv().await.expect("read 2");
        order.extend([first.0, second.0]);
        assert!(
            entered.try_recv().is_err(),
            "a writer waits for the readers before it"
        );
        drop((first, second));
        for _ in 0..3 {
            let (name, pass) = entered.recv().await.expect("the next one");
            order.push(name);
            assert!(entered.try_recv().is_err(), "nobody shares with {name}");
            drop(pass);
        }
        assert_eq!(order, ["read 1", "read 2", "write 3", "read 4", "write 5"]);
        tokio::task::yield_now().await;
        assert!(lanes.lock().is_empty(), "an empty lane is forgotten");
    }
}
