//! Lanes: requests on one resource run in the order of arrival; the rest run concurrently.
//!
//! Paths, watches and searches belong to the connection that names them; all connections share the
//! configuration and the threads. So a request on a disk that hangs holds up only its own client.
//!
//! A request may claim several resources, such as both paths of a copy. It queues for all of them
//! at once. So it waits only for requests that came before it, and no two wait for each other.

mod claims;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raddle_protocol::table::{Lane, Resource};

use self::claims::{Claim, ClaimKey, Mode};

/// All lanes with a request in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lanes {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    queues: HashMap<ClaimKey, LaneQueue>,
    /// Requests that are missing a claim, by their tickets.
    waiting: HashMap<u64, WaitingRequest>,
    next_ticket: u64,
}

/// The requests that hold one resource, and those that wait for it, in order.
#[derive(Debug, Default)]
struct LaneQueue {
    /// Number of requests that hold it, by mode.
    inside: [usize; Mode::COUNT],
    waiting: VecDeque<(u64, Mode)>,
}

struct WaitingRequest {
    claims: Vec<Claim>,
    /// How many of the claims are not granted yet.
    missing: usize,
    job: Job,
}

impl fmt::Debug for WaitingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {:?} missing", self.missing, self.claims)
    }
}

type Job = Box<dyn FnOnce(Option<Pass>) + Send>;

/// The right to be in a lane; dropping it admits the next request.
#[derive(Debug)]
pub(crate) struct Pass {
    lanes: Lanes,
    claims: Vec<Claim>,
}

impl Lanes {
    /// Runs the job when its lane admits it: at once if the lane is free.
    pub(crate) fn enter<F>(&self, lane: Lane, connection: u64, job: F)
    where
        F: FnOnce(Option<Pass>) + Send + 'static,
    {
        let claims = claims::of(lane, connection);
        if claims.is_empty() {
            return job(None);
        }
        let mut state = self.lock();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        let missing = claims
            .iter()
            .filter(|Claim { key, mode }| {
                let queue = state.queues.entry(key.clone()).or_default();
                !queue.join(ticket, *mode)
            })
            .count();
        if missing > 0 {
            let job = Box::new(job);
            let waiting = WaitingRequest {
                claims,
                missing,
                job,
            };
            state.waiting.insert(ticket, waiting);
            return;
        }
        drop(state);
        job(Some(Pass {
            lanes: self.clone(),
            claims,
        }));
    }

    fn release(&self, claims: &[Claim]) {
        let mut ready = Vec::new();
        let mut state = self.lock();
        let State {
            queues, waiting, ..
        } = &mut *state;
        for Claim { key, mode } in claims {
            let Some(queue) = queues.get_mut(key) else {
                continue;
            };
            queue.inside[*mode as usize] -= 1;
            while let Some(ticket) = queue.admit_next() {
                let Some(next) = waiting.get_mut(&ticket) else {
                    continue;
                };
                next.missing -= 1;
                if next.missing == 0 {
                    ready.extend(waiting.remove(&ticket));
                }
            }
            if queue.inside.iter().all(|count| *count == 0) {
                queues.remove(key);
            }
        }
        drop(state);
        for WaitingRequest { claims, job, .. } in ready {
            let lanes = self.clone();
            let pass = Pass { lanes, claims };
            // On a task of its own: a long queue of quick jobs must not nest.
            tokio::spawn(async move { job(Some(pass)) });
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LaneQueue {
    /// Admits the request and returns true, or queues it and returns false.
    fn join(&mut self, ticket: u64, mode: Mode) -> bool {
        let admitted = self.waiting.is_empty() && self.admits(mode);
        if admitted {
            self.inside[mode as usize] += 1;
        } else {
            self.waiting.push_back((ticket, mode));
        }
        admitted
    }

    /// Admits the first waiting request, if the present holders allow it.
    fn admit_next(&mut self) -> Option<u64> {
        let &(ticket, mode) = self.waiting.front()?;
        if !self.admits(mode) {
            return None;
        }
        self.waiting.pop_front();
        self.inside[mode as usize] += 1;
        Some(ticket)
    }

    fn admits(&self, mode: Mode) -> bool {
        Mode::ALL
            .iter()
            .all(|other| self.inside[*other as usize] == 0 || mode.goes_with(*other))
    }
}

impl Pass {
    /// Gives up a resource of all connections before the request is answered.
    pub(crate) fn leave(&mut self, resource: &Resource) {
        let is_left = |it: &mut Claim| it.key.is_shared(resource);
        let left: Vec<Claim> = self.claims.extract_if(.., is_left).collect();
        self.lanes.release(&left);
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.lanes.release(&self.claims);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_protocol::methods::{
        FsCopy, FsCreateDirectory, FsReadDirectory, FsReadFile, FsRemove, FsWriteFile,
    };
    use raddle_protocol::table::{Method, Resource};
    use serde_json::json;
    use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

    /// Lanes, and the requests that they admitted.
    struct LaneHarness {
        lanes: Lanes,
        sender: UnboundedSender<(String, Option<Pass>)>,
        entered: UnboundedReceiver<(String, Option<Pass>)>,
    }

    impl LaneHarness {
        fn new() -> Self {
            let (sender, entered) = mpsc::unbounded_channel();
            let lanes = Lanes::default();
            Self {
                lanes,
                sender,
                entered,
            }
        }

        fn enter(&self, name: &str, lane: Lane) {
            self.enter_from(1, name, lane);
        }

        fn enter_from(&self, connection: u64, name: &str, lane: Lane) {
            let (sender, name) = (self.sender.clone(), name.to_owned());
            self.lanes.enter(lane, connection, move |pass| {
                let _ = sender.send((name, pass));
            });
        }

        /// Returns the requests that are admitted while the earlier ones keep their passes.
        async fn admitted(&mut self) -> (Vec<String>, Vec<Option<Pass>>) {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            std::iter::from_fn(|| self.entered.try_recv().ok()).unzip()
        }

        /// Returns all requests, in the groups that were admitted together.
        async fn groups(&mut self) -> Vec<Vec<String>> {
            let mut groups = Vec::new();
            loop {
                let (mut names, passes) = self.admitted().await;
                if names.is_empty() {
                    break;
                }
                names.sort();
                groups.push(names);
                drop(passes);
            }
            let state = self.lanes.lock();
            assert!(state.queues.is_empty(), "an empty lane is forgotten");
            assert!(state.waiting.is_empty());
            drop(state);
            groups
        }
    }

    fn lane<M: Method>(params: serde_json::Value) -> Lane {
        M::lane(&serde_json::from_value(params).expect("params"))
    }

    fn read(path: &str) -> Lane {
        lane::<FsReadFile>(json!({ "path": path }))
    }

    fn write(path: &str) -> Lane {
        lane::<FsWriteFile>(json!({ "path": path, "dataBase64": "" }))
    }

    fn remove(path: &str) -> Lane {
        lane::<FsRemove>(json!({ "path": path }))
    }

    fn copy(from: &str, to: &str) -> Lane {
        lane::<FsCopy>(json!({ "sourcePath": from, "destinationPath": to }))
    }

    /// Checks that these requests, in this order, are admitted in these groups.
    async fn check(requests: &[(&str, Lane)], groups: &[&[&str]]) {
        let mut harness = LaneHarness::new();
        for (name, lane) in requests {
            harness.enter(name, lane.clone());
        }
        assert_eq!(harness.groups().await, groups);
    }

    #[tokio::test]
    async fn readers_share_and_writers_wait_their_turn() {
        let shared = || Lane::Shared(Resource::Config);
        let exclusive = || Lane::Exclusive(Resource::Config);
        check(
            &[
                ("read 1", shared()),
                ("read 2", shared()),
                ("write 3", exclusive()),
                ("read 4", shared()),
                ("write 5", exclusive()),
            ],
            &[
                &["read 1", "read 2"],
                &["write 3"],
                &["read 4"],
                &["write 5"],
            ],
        )
        .await;
    }

    #[tokio::test]
    async fn spellings_of_one_path_are_one_path() {
        check(
            &[
                ("1", write("/d/z")),
                ("2", write("/d//z")),
                ("3", read("/d/./z")),
                ("4", read("/d/x/../z/")),
                ("5", write("/d/y")),
            ],
            &[&["1", "5"], &["2"], &["3", "4"]],
        )
        .await;
    }

    #[tokio::test]
    async fn a_copy_keeps_its_order_with_both_of_its_paths() {
        check(
            &[
                ("write source", write("/a")),
                ("copy", copy("/a", "/b")),
                ("read source", read("/a")),
                ("read copy", read("/b")),
                ("write source again", write("/a")),
            ],
            &[
                &["write source"],
                &["copy", "read source"],
                &["read copy", "write source again"],
            ],
        )
        .await;
        // Opposite copies must not deadlock, and neither must a copy onto or into itself.
        check(
            &[
                ("1", copy("/a", "/b")),
                ("2", copy("/b", "/a")),
                ("3", copy("/a", "/a")),
                ("4", copy("/a", "/a/b")),
                ("5", copy("/a/b", "/a")),
            ],
            &[&["1"], &["2"], &["3"], &["4"], &["5"]],
        )
        .await;
    }

    #[tokio::test]
    async fn a_folder_as_a_whole_keeps_its_order_with_what_is_inside() {
        check(
            &[
                ("write inside", write("/d/e/f")),
                ("remove", remove("/d")),
                ("make", lane::<FsCreateDirectory>(json!({ "path": "/d/e" }))),
                ("write again", write("/d/e/f")),
                ("beside", write("/d2/f")),
            ],
            &[
                &["beside", "write inside"],
                &["remove"],
                &["make"],
                &["write again"],
            ],
        )
        .await;
        // A listing and a write inside do not wait for each other.
        check(
            &[
                ("write", write("/d/f")),
                ("list", lane::<FsReadDirectory>(json!({ "path": "/d" }))),
                ("write another", write("/d/g")),
            ],
            &[&["list", "write", "write another"]],
        )
        .await;
    }

    #[tokio::test]
    async fn a_path_belongs_to_its_connection_and_the_configuration_to_all() {
        let mut harness = LaneHarness::new();
        harness.enter_from(1, "remove all", remove("/"));
        harness.enter_from(1, "behind it", write("/a"));
        harness.enter_from(1, "config", Lane::Exclusive(Resource::Config));
        harness.enter_from(2, "another's", write("/a"));
        harness.enter_from(2, "another's config", Lane::Shared(Resource::Config));
        let groups = harness.groups().await;
        let (first, second) = (
            ["another's", "config", "remove all"],
            ["another's config", "behind it"],
        );
        assert_eq!(groups, [first.to_vec(), second.to_vec()]);
    }

    #[tokio::test]
    async fn a_path_of_any_length_keeps_its_order_and_costs_little() {
        for path in [
            "/a".repeat(2000),
            format!("/{}", "a".repeat(250)).repeat(16),
        ] {
            let claims = claims::of(write(&path), 1);
            assert!(claims.len() <= 33, "{} claims", claims.len());
            check(
                &[("1", write(&path)), ("2", write(&path))],
                &[&["1"], &["2"]],
            )
            .await;
        }
        // A path that cannot exist is rejected soon, and until then blocks no other request.
        for path in ["/a".repeat(100_000), format!("/{}", "a".repeat(1 << 20))] {
            assert_eq!(claims::of(write(&path), 1).len(), 0);
        }
    }
}
