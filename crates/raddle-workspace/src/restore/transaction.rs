//! The transaction of a restore.
//!
//! 1. The intent is stored, as one that has replaced nothing.
//! 2. The new files are written to a staging folder in the workspace, which needs all the space.
//! 3. The intent is stored as one that may have replaced files. Each file is exchanged with the
//!    staged one, and what was displaced is compared with the plan. A folder that only its owner may
//!    not change is unlocked before that, and locked after it.
//! 4. The folders are synchronised, the staging folder is removed, and then the intent: the restore
//!    is complete.
//!
//! After a failure before the third part, the staging folder and the intent are removed, which needs
//! no space. After a later one, the intent to undo is stored, and carried out like any other. After
//! the death of the process, an intent that has replaced nothing is given up; another one is carried
//! out from the start, and what is done is skipped.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, Mode, fsync, mkdirat, unlinkat};
use rustix::io::Errno;

use super::disk::{self, Occupant};
use super::faults::Faults;
use super::intent::{Intent, Phase};
use super::{RestoreOutcome, RestoreStep};
use crate::error::is_absent;
use crate::opened::{open_folder, open_parent};
use crate::store::Store;
use crate::{Error, FileEntry, Workspace, WorkspacePath};

/// Reaction to a path that has neither of the two states.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnConflict {
    /// Everything is undone.
    Stop,
    /// The path is left alone, and reported.
    Skip,
}

/// Runs a new restore. If it fails, the files are as before.
pub(super) fn run(
    workspace: &Workspace,
    intent: &Intent,
    faults: &dyn Faults,
) -> Result<(), Error> {
    let store = workspace.store.folder();
    let mut transaction = Transaction::new(workspace, intent, faults, OnConflict::Stop);
    let staged = reach(faults, "store the intent")
        .and_then(|()| intent.store(store))
        .and_then(|()| transaction.stage_all())
        .and_then(|staged| {
            reach(faults, "store that files are replaced")?;
            Ok((staged, intent.enter(Phase::Forward, store)?))
        });
    let (staged, intent) = match staged {
        Ok(staged) => staged,
        Err(error) => {
            transaction.give_up()?;
            return Err(not_restored(error));
        }
    };
    let Err(error) = transaction.replace_all(&staged) else {
        return Ok(());
    };
    reach(faults, "store the intent to undo")?;
    let back = intent.enter(Phase::Back, store)?;
    let mut undo = Transaction::new(workspace, &back, faults, OnConflict::Skip);
    undo.conflicts = transaction.not_begun();
    undo.run()?;
    Err(not_restored(error))
}

/// Says of an error that all files are as before.
fn not_restored(error: Error) -> Error {
    match error {
        Error::Changed(path) => Error::Changed(path),
        error => Error::NotRestored(Box::new(error)),
    }
}

/// Completes an interrupted restore, or undoes it.
pub(super) fn recover(
    workspace: &Workspace,
    intent: Intent,
    faults: &dyn Faults,
) -> Result<RestoreOutcome, Error> {
    let outcome = |intent: &Intent, conflicts: BTreeSet<WorkspacePath>| {
        let paths = intent.steps.iter().map(|it| it.path.clone());
        RestoreOutcome {
            restored: paths.filter(|it| !conflicts.contains(it)).collect(),
            conflicts: conflicts.into_iter().collect(),
            is_undone: intent.phase != Phase::Forward,
        }
    };
    let first = Transaction::new(workspace, &intent, faults, OnConflict::Skip);
    if intent.phase == Phase::Staging {
        first.give_up()?;
        return Ok(outcome(&intent, BTreeSet::new()));
    }
    match first.run() {
        Ok(conflicts) => Ok(outcome(&intent, conflicts)),
        Err(error) if intent.phase == Phase::Back => Err(error),
        Err(_) => {
            reach(faults, "store the intent to undo")?;
            let back = intent.enter(Phase::Back, workspace.store.folder())?;
            let conflicts = Transaction::new(workspace, &back, faults, OnConflict::Skip).run()?;
            Ok(outcome(&back, conflicts))
        }
    }
}

fn reach(faults: &dyn Faults, point: &'static str) -> Result<(), Error> {
    faults
        .reach(point)
        .map_err(|it| Error::disk(point.as_ref(), it))
}

/// The staging folder, and the steps that are not done, with their numbers.
struct Staged {
    folder: OwnedFd,
    open: Vec<(usize, RestoreStep)>,
}

struct Transaction<'a> {
    store: &'a Store,
    root: &'a OwnedFd,
    intent: &'a Intent,
    faults: &'a dyn Faults,
    on_conflict: OnConflict,
    steps: Vec<RestoreStep>,
    conflicts: BTreeSet<WorkspacePath>,
    /// Paths whose file may have been replaced.
    begun: BTreeSet<WorkspacePath>,
}

impl<'a> Transaction<'a> {
    fn new(
        workspace: &'a Workspace,
        intent: &'a Intent,
        faults: &'a dyn Faults,
        on_conflict: OnConflict,
    ) -> Self {
        Self {
            store: &workspace.store,
            root: &workspace.root,
            intent,
            faults,
            on_conflict,
            steps: intent.directed_steps(),
            conflicts: BTreeSet::new(),
            begun: BTreeSet::new(),
        }
    }

    /// Returns the paths that need no undoing. The user may have removed one of them that the restore
    /// would have removed: its absence would look like a step to undo.
    fn not_begun(&self) -> BTreeSet<WorkspacePath> {
        let paths = self.steps.iter().map(|it| &it.path);
        paths
            .filter(|it| !self.begun.contains(it))
            .cloned()
            .collect()
    }

    /// Runs the steps that are not done; returns the paths that are left alone.
    fn run(mut self) -> Result<BTreeSet<WorkspacePath>, Error> {
        let staged = self.stage_all()?;
        self.replace_all(&staged)?;
        Ok(self.conflicts)
    }

    /// Makes everything ready that needs space, and replaces nothing.
    fn stage_all(&mut self) -> Result<Staged, Error> {
        self.return_displaced()?;
        self.remove_staging()?;
        let open = self.open_steps()?;
        let folder = self.stage(&open)?;
        Ok(Staged { folder, open })
    }

    fn replace_all(&mut self, staged: &Staged) -> Result<(), Error> {
        self.replace(&staged.folder, &staged.open)?;
        self.sync_folders()?;
        self.remove_staging()?;
        self.remove_intent()
    }

    /// Removes the traces of a restore that has replaced nothing.
    fn give_up(&self) -> Result<(), Error> {
        if !Intent::exists(self.store.folder()) {
            return Ok(());
        }
        self.remove_staging()?;
        self.remove_intent()
    }

    fn remove_intent(&self) -> Result<(), Error> {
        self.fault("remove the intent")?;
        Intent::remove(self.store.folder())
    }

    /// Puts back a content of the user that a dead process displaced before it looked at it.
    fn return_displaced(&mut self) -> Result<(), Error> {
        let staging = match open_folder(self.root, self.intent.staging.as_bytes()) {
            Ok(staging) => staging,
            Err(error) if is_absent(error) => return Ok(()),
            Err(error) => return Err(Error::disk(self.intent.staging.as_ref(), error)),
        };
        for (number, step) in self.steps.clone().iter().enumerate() {
            let name = number.to_string();
            let at_path = |it: io::Error| Error::disk(step.path.as_path(), it);
            let displaced = disk::occupant_of(&staging, name.as_bytes()).map_err(at_path)?;
            let is_ours = displaced.is(step.now) || displaced.is(step.then);
            if displaced == Occupant::Nothing || is_ours {
                continue;
            }
            self.fault("return a displaced file")?;
            let parent = open_parent(self.root, &step.path).map_err(|it| at_path(it.into()))?;
            let now = disk::occupant_of(&parent, step.path.name()).map_err(at_path)?;
            let returned = match now {
                Occupant::Nothing => {
                    disk::move_to_free((&staging, name.as_bytes()), (&parent, step.path.name()))
                }
                _ => disk::exchange((&staging, &name), (&parent, step.path.name())),
            };
            returned.map_err(|it| at_path(it.into()))?;
            self.conflicts.insert(step.path.clone());
        }
        Ok(())
    }

    /// Returns the steps that are not done, with their numbers.
    fn open_steps(&mut self) -> Result<Vec<(usize, RestoreStep)>, Error> {
        let mut open = Vec::new();
        for (number, step) in self.steps.clone().into_iter().enumerate() {
            if self.conflicts.contains(&step.path) {
                continue;
            }
            let now = self.occupant(&step.path)?;
            // A folder goes with its content, before the file comes.
            let is_folder = now == Occupant::Other && self.is_leaving_folder(&step.path);
            if now.is(step.now) || is_folder && step.now.is_none() {
                if now.is(step.then) && !is_folder {
                    continue;
                }
                open.push((number, step));
            } else if !(now.is(step.then) || now == Occupant::Other && self.is_coming_folder(&step))
            {
                self.conflict(step.path)?;
            }
        }
        Ok(open)
    }

    fn is_leaving_folder(&self, path: &WorkspacePath) -> bool {
        let [leaving, _] = self.intent.directed_folders();
        leaving.iter().any(|(it, _)| it == path)
    }

    /// Reports whether a folder at the path is the result of the step.
    fn is_coming_folder(&self, step: &RestoreStep) -> bool {
        let [_, coming] = self.intent.directed_folders();
        step.then.is_none() && coming.iter().any(|(it, _)| *it == step.path)
    }

    fn occupant(&self, path: &WorkspacePath) -> Result<Occupant, Error> {
        disk::occupant(self.root, path).map_err(|it| Error::disk(path.as_path(), it))
    }

    fn conflict(&mut self, path: WorkspacePath) -> Result<(), Error> {
        self.begun.remove(&path);
        if self.on_conflict == OnConflict::Stop {
            return Err(Error::Changed(path.as_path().to_owned()));
        }
        self.conflicts.insert(path);
        Ok(())
    }

    /// Writes all new files, so that a full disk shows before anything was replaced.
    fn stage(&self, open: &[(usize, RestoreStep)]) -> Result<OwnedFd, Error> {
        let disk = |it: Errno| Error::disk(self.intent.staging.as_ref(), it);
        self.fault("make the staging folder")?;
        mkdirat(self.root, &*self.intent.staging, Mode::from_raw_mode(0o700)).map_err(disk)?;
        let staging = open_folder(self.root, self.intent.staging.as_bytes()).map_err(disk)?;
        for (number, step) in open {
            if let Some(entry) = &step.then {
                self.fault("stage a file")?;
                disk::write_entry(self.store, &staging, &number.to_string(), entry)?;
            }
        }
        Ok(staging)
    }

    /// Makes all changes: what goes first, so that what comes finds its place free.
    fn replace(&mut self, staging: &OwnedFd, open: &[(usize, RestoreStep)]) -> Result<(), Error> {
        let intent = self.intent;
        let [leaving, coming] = intent.directed_folders();
        for (folder, mode) in leaving {
            self.fault("unlock a folder")?;
            disk::unlock_folder(self.root, folder, *mode)
                .map_err(|it| Error::disk(folder.as_path(), it))?;
        }
        for (number, step) in open.iter().filter(|(_, it)| it.then.is_none()) {
            self.fault("remove a file")?;
            self.set_aside(staging, *number, step)?;
        }
        // Inner folders first.
        for (folder, _) in leaving.iter().rev() {
            self.fault("remove a folder")?;
            disk::remove_folder(self.root, folder)
                .map_err(|it| Error::disk(folder.as_path(), it))?;
        }
        for (folder, mode) in coming {
            self.fault("make a folder")?;
            match disk::make_folder((self.root, staging), folder, *mode) {
                Ok(()) => {}
                Err(error) if is_absent(error) && self.on_conflict == OnConflict::Skip => {}
                Err(error) => return Err(Error::disk(folder.as_path(), error)),
            }
        }
        for (number, step) in open {
            if let Some(entry) = step.then {
                self.fault("replace a file")?;
                self.put(staging, *number, step, entry)?;
            }
        }
        // A leaving folder with files of the user stays.
        for (folder, mode) in leaving.iter().chain(coming).rev() {
            self.fault("lock a folder")?;
            disk::lock_folder(self.root, folder, *mode)
                .map_err(|it| Error::disk(folder.as_path(), it))?;
        }
        Ok(())
    }

    fn set_aside(
        &mut self,
        staging: &OwnedFd,
        number: usize,
        step: &RestoreStep,
    ) -> Result<(), Error> {
        let at_path = |it: io::Error| Error::disk(step.path.as_path(), it);
        let name = number.to_string();
        let parent = match open_parent(self.root, &step.path) {
            Ok(parent) => parent,
            Err(error) if is_absent(error) => return self.conflict(step.path.clone()),
            Err(error) => return Err(at_path(error.into())),
        };
        let place = (&parent, step.path.name());
        self.begun.insert(step.path.clone());
        match disk::move_to_free(place, (staging, name.as_bytes())) {
            Ok(()) => {}
            Err(Errno::NOENT) => return self.conflict(step.path.clone()),
            Err(error) => return Err(at_path(error.into())),
        }
        self.fault("compare what was removed")?;
        let displaced = disk::occupant_of(staging, name.as_bytes()).map_err(at_path)?;
        if displaced.is(step.now) {
            return Ok(());
        }
        let returned = disk::move_to_free((staging, name.as_bytes()), place);
        returned.map_err(|it| at_path(it.into()))?;
        self.conflict(step.path.clone())
    }

    fn put(
        &mut self,
        staging: &OwnedFd,
        number: usize,
        step: &RestoreStep,
        entry: FileEntry,
    ) -> Result<(), Error> {
        let at_path = |it: io::Error| Error::disk(step.path.as_path(), it);
        let name = number.to_string();
        let parent = match open_parent(self.root, &step.path) {
            Ok(parent) => parent,
            Err(error) if is_absent(error) => return self.conflict(step.path.clone()),
            Err(error) => return Err(at_path(error.into())),
        };
        let place = (&parent, step.path.name());
        self.begun.insert(step.path.clone());
        if step.now.is_none() {
            return match disk::move_to_free((staging, name.as_bytes()), place) {
                Ok(()) => Ok(()),
                Err(Errno::EXIST | Errno::NOTEMPTY) => self.conflict(step.path.clone()),
                Err(error) => Err(at_path(error.into())),
            };
        }
        // Where the system cannot exchange, a change between this look and the next step is lost.
        if !disk::occupant_of(&parent, step.path.name())
            .map_err(at_path)?
            .is(step.now)
        {
            return self.conflict(step.path.clone());
        }
        match disk::exchange((staging, &name), place) {
            Ok(()) => {}
            Err(Errno::NOENT) => return self.conflict(step.path.clone()),
            Err(error) => return Err(at_path(error.into())),
        }
        self.fault("compare what was replaced")?;
        let displaced = disk::occupant_of(staging, name.as_bytes()).map_err(at_path)?;
        if displaced == Occupant::Nothing || displaced.is(step.now) {
            return Ok(());
        }
        debug_assert_ne!(step.now, Some(entry), "a step changes something");
        disk::exchange((staging, &name), place).map_err(|it| at_path(it.into()))?;
        self.conflict(step.path.clone())
    }

    /// Makes the new names durable before the intent goes.
    fn sync_folders(&self) -> Result<(), Error> {
        let changed = self.steps.iter().map(|it| &it.path);
        let [leaving, coming] = self.intent.directed_folders();
        let made = leaving.iter().chain(coming).map(|(path, _)| path);
        let folders: BTreeSet<Option<WorkspacePath>> =
            changed.chain(made).map(WorkspacePath::parent).collect();
        for folder in folders {
            self.fault("synchronise a folder")?;
            let name = folder.as_ref().map_or(&b"."[..], |it| it.name());
            let opened = match &folder {
                Some(path) => open_parent(self.root, path).and_then(|it| open_folder(it, name)),
                None => open_folder(self.root, name),
            };
            match opened.and_then(fsync) {
                Ok(()) => {}
                Err(error) if is_absent(error) => {}
                Err(error) => return Err(Error::disk(self.intent.staging.as_ref(), error)),
            }
        }
        Ok(())
    }

    /// Removes the staging folder with the replaced files, all of which are in the store.
    fn remove_staging(&self) -> Result<(), Error> {
        let disk = |it: Errno| Error::disk(self.intent.staging.as_ref(), it);
        let staging = match open_folder(self.root, self.intent.staging.as_bytes()) {
            Ok(staging) => staging,
            Err(error) if is_absent(error) => return Ok(()),
            Err(error) => return Err(disk(error)),
        };
        let mut entries = Dir::read_from(&staging).map_err(disk)?;
        while let Some(entry) = entries.read() {
            let name = entry.map_err(disk)?.file_name().to_bytes().to_vec();
            if name == b"." || name == b".." {
                continue;
            }
            self.fault("remove a replaced file")?;
            disk::remove_entry(&staging, &name).map_err(disk)?;
        }
        self.fault("remove the staging folder")?;
        unlinkat(self.root, &*self.intent.staging, AtFlags::REMOVEDIR).map_err(disk)
    }

    fn fault(&self, point: &'static str) -> Result<(), Error> {
        reach(self.faults, point)
    }
}
