//! The watcher of the system, shared by all watches, because a user may have few of them.
//!
//! A thread of its own owns it. The thread runs commands in sequence, and only watches wait for it,
//! so a folder that blocks it delays no other request.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use notify::event::ModifyKind;
use notify::{Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::oneshot;

use super::path_watch::PathWatch;
use super::watch_target::WatchTarget;
use crate::wire_error::WireError;

/// Handle of the thread. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathWatcher {
    /// None until the first watch. Its queue is bounded by the watches: each has at most one
    /// command in progress, and its last.
    commands: Arc<Mutex<Option<Sender<WatchCommand>>>>,
}

#[derive(Debug)]
enum WatchCommand {
    SetTarget {
        watch: Arc<PathWatch>,
        target: WatchTarget,
        /// Watch again even a folder that is watched already: it may be another folder of the same
        /// name.
        again: bool,
        done: oneshot::Sender<notify::Result<()>>,
    },
    Forget {
        number: u64,
    },
}

impl PathWatcher {
    /// Sets the target of a watch. When this returns, the watch receives its changes.
    pub(super) async fn set_target(
        &self,
        watch: &Arc<PathWatch>,
        target: WatchTarget,
        again: bool,
    ) -> Result<(), WireError> {
        let (done, when_done) = oneshot::channel();
        let command = WatchCommand::SetTarget {
            watch: watch.clone(),
            target,
            again,
            done,
        };
        let io_error = |error| WireError::Io(std::io::Error::other(error));
        self.command_sender()?
            .send(command)
            .map_err(|_| WireError::Dropped)?;
        when_done
            .await
            .map_err(|_| WireError::Dropped)?
            .map_err(io_error)
    }

    /// Removes a watch that has ended.
    pub(super) fn forget(&self, watch: &PathWatch) {
        let number = watch.number;
        if let Ok(commands) = self.command_sender() {
            // Without a thread there is nothing to remove.
            let _ = commands.send(WatchCommand::Forget { number });
        }
    }

    fn command_sender(&self) -> std::io::Result<Sender<WatchCommand>> {
        let mut commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = &*commands {
            return Ok(sender.clone());
        }
        let (sender, receiver) = channel();
        thread::Builder::new()
            .name("path-watcher".into())
            .spawn(move || WatchThread::default().run(&receiver))?;
        Ok(commands.insert(sender).clone())
    }
}

/// The open watches by their real paths: those below a folder are adjacent.
type WatchIndex = BTreeMap<PathBuf, Vec<WatchEntry>>;

/// A watch, and its target folder.
#[derive(Debug)]
struct WatchEntry {
    watch: Arc<PathWatch>,
    target: PathBuf,
}

/// State of the thread.
#[derive(Debug, Default)]
struct WatchThread {
    /// None while there are no watches.
    watcher: Option<RecommendedWatcher>,
    /// The target of each watch, by its number.
    targets: HashMap<u64, (Arc<PathWatch>, WatchTarget)>,
    /// Number of watches of each folder.
    counts: BTreeMap<PathBuf, WatchCount>,
    /// Shared with the callback of the watcher. Never locked during a call of the watcher.
    index: Arc<Mutex<WatchIndex>>,
}

/// Numbers of watches of a folder.
#[derive(Debug, Default)]
struct WatchCount {
    /// Number of recursive watches.
    recursive: usize,
    /// Number of watches of its direct entries only.
    flat: usize,
}

impl WatchCount {
    fn of(&mut self, target: &WatchTarget) -> &mut usize {
        if target.is_recursive() {
            &mut self.recursive
        } else {
            &mut self.flat
        }
    }
}

impl WatchThread {
    fn run(mut self, commands: &Receiver<WatchCommand>) {
        while let Ok(command) = commands.recv() {
            match command {
                WatchCommand::SetTarget {
                    watch,
                    target,
                    again,
                    done,
                } => {
                    let outcome = self.set_target(watch, target, again);
                    let _ = done.send(outcome);
                }
                WatchCommand::Forget { number } => self.forget(number),
            }
        }
    }

    fn set_target(
        &mut self,
        watch: Arc<PathWatch>,
        target: WatchTarget,
        again: bool,
    ) -> notify::Result<()> {
        // The watch has ended: its command to forget it may have come before.
        if watch.is_ended() {
            return Ok(());
        }
        let old_target = self
            .targets
            .get(&watch.number)
            .map(|(_, target_before)| target_before.clone());
        if old_target.as_ref() == Some(&target) && !again {
            return Ok(());
        }
        // Watches the new target before it leaves the old one, so that no change is missed.
        let is_covered = self.is_watched_from_above(&target.target)
            || !again
                && self.counts.get(&target.target).is_some_and(|count| {
                    count.recursive > 0 || count.flat > 0 && !target.is_recursive()
                });
        if !is_covered {
            // A flat watch must not replace a recursive one.
            let is_recursive = target.is_recursive()
                || self
                    .counts
                    .get(&target.target)
                    .is_some_and(|count| count.recursive > 0);
            let watched = self.watch(&target.target, is_recursive);
            if watched.is_err() && !self.counts.contains_key(&target.target) {
                self.unwatch(&target);
            }
            watched?;
        }
        *self
            .counts
            .entry(target.target.clone())
            .or_default()
            .of(&target) += 1;
        self.add_to_index(&watch, &target);
        self.targets.insert(watch.number, (watch.clone(), target));
        if let Some(old_target) = old_target {
            self.remove_from_index(&watch, &old_target);
            self.release(&old_target);
        }
        Ok(())
    }

    fn forget(&mut self, number: u64) {
        if let Some((watch, target)) = self.targets.remove(&number) {
            self.remove_from_index(&watch, &target);
            self.release(&target);
        }
        if self.targets.is_empty() {
            self.watcher = None;
        }
    }

    /// Decrements the count of a folder.
    fn release(&mut self, watch_target: &WatchTarget) {
        let target = &watch_target.target;
        let Some(count) = self.counts.get_mut(target) else {
            return;
        };
        *count.of(watch_target) -= 1;
        let is_last = *count.of(watch_target) == 0 && count.recursive == 0;
        if count.recursive == 0 && count.flat == 0 {
            self.counts.remove(target);
        }
        if is_last && !self.is_watched_from_above(target) {
            self.unwatch(watch_target);
        }
    }

    /// Ends the watch of a folder that no watch needs in this mode.
    fn unwatch(&mut self, target: &WatchTarget) {
        if let Some(watcher) = &mut self.watcher {
            // An error means that the folder itself is gone, and then it is not watched either.
            let _ = watcher.unwatch(&target.target);
        }
        if target.is_recursive() {
            self.rewatch_below(&target.target);
        }
    }

    /// Restores the watches below a folder, which ending its recursive watch has removed.
    fn rewatch_below(&mut self, folder: &Path) {
        let targets_below: Vec<(PathBuf, bool)> = below(&self.counts, folder)
            .map(|(path, count)| (path.clone(), count.recursive > 0))
            .collect();
        for (path, is_recursive) in &targets_below {
            if !self.is_watched_from_above(path) {
                // If it fails, the watches find out why when they resolve their paths.
                let _ = self.watch(path, *is_recursive);
            }
        }
        if !targets_below.is_empty() {
            for (watch, target) in self.targets.values() {
                if target.target.starts_with(folder) {
                    watch.missed(false);
                }
            }
        }
    }

    /// Whether a folder above this one is watched recursively.
    fn is_watched_from_above(&self, target: &Path) -> bool {
        let ancestors = target.ancestors().skip(1);
        ancestors
            .filter_map(|folder| self.counts.get(folder))
            .any(|count| count.recursive > 0)
    }

    fn watch(&mut self, folder: &Path, is_recursive: bool) -> notify::Result<()> {
        if self.watcher.is_none() {
            let index = self.index.clone();
            let on_event = move |event: notify::Result<Event>| match event {
                Ok(event) => dispatch(&lock(&index), &event),
                Err(error) => tracing::warn!(%error, "a file change may have been missed"),
            };
            // A link may lead to the target of another watch, by another name.
            let config = Config::default().with_follow_symlinks(false);
            self.watcher = Some(RecommendedWatcher::new(on_event, config)?);
        }
        let mode = if is_recursive {
            RecursiveMode::Recursive
        } else {
            RecursiveMode::NonRecursive
        };
        match &mut self.watcher {
            Some(watcher) => watcher.watch(folder, mode),
            None => Ok(()),
        }
    }

    /// Adds the watch to the index, so that it receives changes.
    fn add_to_index(&self, watch: &Arc<PathWatch>, target: &WatchTarget) {
        let entry = WatchEntry {
            watch: watch.clone(),
            target: target.target.clone(),
        };
        let mut index = lock(&self.index);
        index.entry(target.real.clone()).or_default().push(entry);
    }

    /// Removes the watch from the index; only once, as it may have been added again.
    fn remove_from_index(&self, watch: &PathWatch, target: &WatchTarget) {
        let mut index = lock(&self.index);
        let Some(entries) = index.get_mut(&target.real) else {
            return;
        };
        let position = entries
            .iter()
            .position(|entry| entry.watch.number == watch.number);
        if let Some(position) = position {
            entries.remove(position);
        }
        if entries.is_empty() {
            index.remove(&target.real);
        }
    }
}

/// Passes an event to the watches that it concerns.
fn dispatch(index: &WatchIndex, event: &Event) {
    if event.need_rescan() {
        // The system's own queue overflowed, so anything may have changed.
        for entry in index.values().flatten() {
            entry.watch.missed(true);
        }
    }
    let comes_or_goes = match event.kind {
        EventKind::Access(_) => return,
        EventKind::Create(_) | EventKind::Remove(_) => true,
        EventKind::Modify(ModifyKind::Name(_)) => true,
        _ => false,
    };
    for path in &event.paths {
        for folder in path.ancestors() {
            for WatchEntry { watch, .. } in index.get(folder).into_iter().flatten() {
                // By the client's own name of the path; joining an empty path would add a slash.
                match path.strip_prefix(folder) {
                    Ok(below) if !below.as_os_str().is_empty() => {
                        watch.add(&watch.path.join(below))
                    }
                    _ => watch.add(&watch.path),
                }
            }
        }
        if comes_or_goes {
            for entry in below(index, path).flat_map(|(_, entries)| entries) {
                entry.watch.moved(entry.target.starts_with(path));
            }
        }
    }
}

/// Returns the entries of a map for a folder and all below it.
fn below<'a, T>(
    map: &'a BTreeMap<PathBuf, T>,
    folder: &'a Path,
) -> impl Iterator<Item = (&'a PathBuf, &'a T)> {
    let from = (Bound::Included(folder), Bound::Unbounded);
    map.range::<Path, _>(from)
        .take_while(move |(path, _)| path.starts_with(folder))
}

fn lock(index: &Mutex<WatchIndex>) -> MutexGuard<'_, WatchIndex> {
    index.lock().unwrap_or_else(PoisonError::into_inner)
}
