//! The lookout: one watcher of the system for all eyes, because a user may have few of them.
//!
//! A thread of its own owns it. It takes orders one after the other and never makes anyone wait who
//! does not wait for its answer, so a folder that keeps it waiting keeps only those who watch.

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

/// The way to the thread. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathWatcher {
    /// Not there until someone watches. Bounded by the watches: each has one order under way at most,
    /// and its last.
    commands: Arc<Mutex<Option<Sender<WatchCommand>>>>,
}

#[derive(Debug)]
enum WatchCommand {
    SetTarget {
        watch: Arc<PathWatch>,
        target: WatchTarget,
        /// Look again even where one looks already: the folder may be another of the same name.
        again: bool,
        done: oneshot::Sender<notify::Result<()>>,
    },
    Forget {
        number: u64,
    },
}

impl PathWatcher {
    /// Lets the eye see what happens at a path. When this returns, it does.
    pub(super) async fn aim(
        &self,
        eye: &Arc<PathWatch>,
        sight: WatchTarget,
        again: bool,
    ) -> Result<(), WireError> {
        let (done, when_done) = oneshot::channel();
        let order = WatchCommand::SetTarget {
            watch: eye.clone(),
            target: sight,
            again,
            done,
        };
        let failed = |error| WireError::Io(std::io::Error::other(error));
        self.orders()?.send(order).map_err(|_| WireError::Dropped)?;
        when_done
            .await
            .map_err(|_| WireError::Dropped)?
            .map_err(failed)
    }

    /// The eye is closed.
    pub(super) fn forget(&self, eye: &PathWatch) {
        let number = eye.number;
        if let Ok(orders) = self.orders() {
            // Without a thread there is nothing to forget.
            let _ = orders.send(WatchCommand::Forget { number });
        }
    }

    fn orders(&self) -> std::io::Result<Sender<WatchCommand>> {
        let mut orders = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(orders) = &*orders {
            return Ok(orders.clone());
        }
        let (sender, receiver) = channel();
        thread::Builder::new()
            .name("lookout".into())
            .spawn(move || WatchThread::default().run(&receiver))?;
        Ok(orders.insert(sender).clone())
    }
}

/// The open eyes by their real paths: those below a folder stand together.
type WatchIndex = BTreeMap<PathBuf, Vec<WatchEntry>>;

/// An eye, and the folder it looks at.
#[derive(Debug)]
struct WatchEntry {
    watch: Arc<PathWatch>,
    target: PathBuf,
}

/// What the thread owns.
#[derive(Debug, Default)]
struct WatchThread {
    /// Not there while nobody watches.
    watcher: Option<RecommendedWatcher>,
    /// Where each eye looks, by its number.
    targets: HashMap<u64, (Arc<PathWatch>, WatchTarget)>,
    /// How many look at each folder.
    counts: BTreeMap<PathBuf, WatchCount>,
    /// Shared with the watcher. Never held while the watcher is asked for something.
    index: Arc<Mutex<WatchIndex>>,
}

/// How many look at a folder.
#[derive(Debug, Default)]
struct WatchCount {
    /// At it and all below it.
    deep: usize,
    /// At what is directly in it.
    flat: usize,
}

impl WatchCount {
    fn of(&mut self, sight: &WatchTarget) -> &mut usize {
        if sight.is_recursive() {
            &mut self.deep
        } else {
            &mut self.flat
        }
    }
}

impl WatchThread {
    fn run(mut self, orders: &Receiver<WatchCommand>) {
        while let Ok(order) = orders.recv() {
            match order {
                WatchCommand::SetTarget {
                    watch: eye,
                    target: sight,
                    again,
                    done,
                } => {
                    let aimed = self.aim(eye, sight, again);
                    let _ = done.send(aimed);
                }
                WatchCommand::Forget { number } => self.forget(number),
            }
        }
    }

    fn aim(&mut self, eye: Arc<PathWatch>, sight: WatchTarget, again: bool) -> notify::Result<()> {
        // Told already that it has ended: its order to forget may have been the one before.
        if eye.is_ended() {
            return Ok(());
        }
        let before = self
            .targets
            .get(&eye.number)
            .map(|(_, sight)| sight.clone());
        if before.as_ref() == Some(&sight) && !again {
            return Ok(());
        }
        // First the new place, then away from the old one, so that nothing happens unseen.
        let is_seen = self.is_deep_above(&sight.target)
            || !again
                && self
                    .counts
                    .get(&sight.target)
                    .is_some_and(|looks| looks.deep > 0 || looks.flat > 0 && !sight.is_recursive());
        if !is_seen {
            // To look flatly where someone looks deeply would spoil that.
            let deep = sight.is_recursive()
                || self
                    .counts
                    .get(&sight.target)
                    .is_some_and(|looks| looks.deep > 0);
            let watched = self.watch(&sight.target, deep);
            if watched.is_err() && !self.counts.contains_key(&sight.target) {
                self.look_away(&sight);
            }
            watched?;
        }
        *self
            .counts
            .entry(sight.target.clone())
            .or_default()
            .of(&sight) += 1;
        self.show(&eye, &sight);
        self.targets.insert(eye.number, (eye.clone(), sight));
        if let Some(before) = before {
            self.hide(&eye, &before);
            self.leave(&before);
        }
        Ok(())
    }

    fn forget(&mut self, number: u64) {
        if let Some((eye, sight)) = self.targets.remove(&number) {
            self.hide(&eye, &sight);
            self.leave(&sight);
        }
        if self.targets.is_empty() {
            self.watcher = None;
        }
    }

    /// One fewer looks at a folder.
    fn leave(&mut self, sight: &WatchTarget) {
        let target = &sight.target;
        let Some(looks) = self.counts.get_mut(target) else {
            return;
        };
        *looks.of(sight) -= 1;
        let is_last = *looks.of(sight) == 0 && looks.deep == 0;
        if looks.deep == 0 && looks.flat == 0 {
            self.counts.remove(target);
        }
        if is_last && !self.is_deep_above(target) {
            self.look_away(sight);
        }
    }

    /// Nobody looks like this any more.
    fn look_away(&mut self, sight: &WatchTarget) {
        if let Some(watcher) = &mut self.watcher {
            // An error says that the folder itself is gone, and then it is not watched either.
            let _ = watcher.unwatch(&sight.target);
        }
        if sight.is_recursive() {
            self.look_again_below(&sight.target);
        }
    }

    /// To look away from a folder with all below it was to look away from where others look still.
    fn look_again_below(&mut self, folder: &Path) {
        let below: Vec<(PathBuf, bool)> = below(&self.counts, folder)
            .map(|(path, looks)| (path.clone(), looks.deep > 0))
            .collect();
        for (path, deep) in &below {
            if !self.is_deep_above(path) {
                // If it fails, the eyes find out why when they look again.
                let _ = self.watch(path, *deep);
            }
        }
        if !below.is_empty() {
            for (eye, sight) in self.targets.values() {
                if sight.target.starts_with(folder) {
                    eye.missed(false);
                }
            }
        }
    }

    /// Whether someone looks at a folder above this one and at all below it.
    fn is_deep_above(&self, target: &Path) -> bool {
        let above = target.ancestors().skip(1);
        above
            .filter_map(|folder| self.counts.get(folder))
            .any(|looks| looks.deep > 0)
    }

    fn watch(&mut self, folder: &Path, deep: bool) -> notify::Result<()> {
        if self.watcher.is_none() {
            let eyes = self.index.clone();
            let see = move |event: notify::Result<Event>| match event {
                Ok(event) => see(&lock(&eyes), &event),
                Err(error) => tracing::warn!(%error, "a change may go unseen"),
            };
            // A link may lead to where another eye looks, by another name.
            let config = Config::default().with_follow_symlinks(false);
            self.watcher = Some(RecommendedWatcher::new(see, config)?);
        }
        let mode = if deep {
            RecursiveMode::Recursive
        } else {
            RecursiveMode::NonRecursive
        };
        match &mut self.watcher {
            Some(watcher) => watcher.watch(folder, mode),
            None => Ok(()),
        }
    }

    /// From now on the eye is told what happens there.
    fn show(&self, eye: &Arc<PathWatch>, sight: &WatchTarget) {
        let seat = WatchEntry {
            watch: eye.clone(),
            target: sight.target.clone(),
        };
        let mut eyes = lock(&self.index);
        eyes.entry(sight.real.clone()).or_default().push(seat);
    }

    /// From now on it is not; only once, as it may have been shown the same place again.
    fn hide(&self, eye: &PathWatch, sight: &WatchTarget) {
        let mut eyes = lock(&self.index);
        let Some(there) = eyes.get_mut(&sight.real) else {
            return;
        };
        let seat = there
            .iter()
            .position(|seat| seat.watch.number == eye.number);
        if let Some(seat) = seat {
            there.remove(seat);
        }
        if there.is_empty() {
            eyes.remove(&sight.real);
        }
    }
}

/// Tells the eyes what concerns them.
fn see(eyes: &WatchIndex, event: &Event) {
    if event.need_rescan() {
        // The system's own queue was too short, so anything may have changed.
        for seat in eyes.values().flatten() {
            seat.watch.missed(true);
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
            for WatchEntry { watch: eye, .. } in eyes.get(folder).into_iter().flatten() {
                // By the name that the client has for it; joining nothing would add a slash.
                match path.strip_prefix(folder) {
                    Ok(below) if !below.as_os_str().is_empty() => eye.add(&eye.path.join(below)),
                    _ => eye.add(&eye.path),
                }
            }
        }
        if comes_or_goes {
            for seat in below(eyes, path).flat_map(|(_, seats)| seats) {
                seat.watch.moved(seat.target.starts_with(path));
            }
        }
    }
}

/// What a map has for a folder and all below it.
fn below<'a, T>(
    map: &'a BTreeMap<PathBuf, T>,
    folder: &'a Path,
) -> impl Iterator<Item = (&'a PathBuf, &'a T)> {
    let from = (Bound::Included(folder), Bound::Unbounded);
    map.range::<Path, _>(from)
        .take_while(move |(path, _)| path.starts_with(folder))
}

fn lock(eyes: &Mutex<WatchIndex>) -> MutexGuard<'_, WatchIndex> {
    eyes.lock().unwrap_or_else(PoisonError::into_inner)
}
