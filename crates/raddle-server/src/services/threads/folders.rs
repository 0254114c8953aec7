//! The real paths of the folders that a client names.
//!
//! Commands may write a folder that a client names. Another thread, whose workspace contains it,
//! can replace it with a link. So a link is resolved once, when the client names the folder, and
//! its target is stored with the settings: see [`Settings::real_paths`]. A link that a command may
//! have created is rejected.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use raddle_core::ports::{CreatedCopy, ForkedFiles, NewCopy, ThreadFolder, WorkspaceCopies};
use raddle_core::{Settings, SettingsChange, ThreadId};
use raddle_protocol::WorkspaceMode;
use raddle_sandbox::{PolicyPath, WrittenFolders, home, is_around_home, scratch_folders};

use crate::services::ServerState;
use crate::services::threads::lists;
use crate::wire_error::WireError;

/// Adds the real paths of its folders to a change of a thread's settings.
pub(crate) async fn resolved(
    state: &ServerState,
    id: ThreadId,
    change: SettingsChange,
) -> Result<SettingsChange, WireError> {
    let folders: Vec<String> = change.folders().cloned().collect();
    if folders.is_empty() {
        return Ok(change);
    }
    // A thread that cannot be read rejects the change itself, and says why.
    let Ok(peek) = state.threads.peek(id).await else {
        return Ok(change);
    };
    let settings = peek.thread.settings();
    // A thread with a copy stays in it when a client names the folder again.
    let in_copy = state.copies.resolve(folder_in(id, settings), folders);
    let in_copy = in_copy.await?;
    let change = change.with_paths(&in_copy);
    let folders = change.folders().cloned().collect();
    let real_paths = real_paths(state, folders, settings).await?;
    Ok(SettingsChange {
        real_paths: Some(real_paths),
        ..change
    })
}

/// Adds the real paths of its folders to the settings of a new thread.
pub(crate) async fn resolved_settings(
    state: &ServerState,
    settings: Settings,
) -> Result<Settings, WireError> {
    let folders = settings.folders().cloned().collect();
    let change = SettingsChange {
        real_paths: Some(real_paths(state, folders, &Settings::default()).await?),
        ..SettingsChange::default()
    };
    Ok(change.applied_to(&settings))
}

/// Returns a thread with its working directory.
pub(crate) async fn folder_of(
    state: &ServerState,
    id: ThreadId,
) -> Result<ThreadFolder, WireError> {
    let peek = state.threads.peek(id).await;
    let peek = peek.map_err(|error| super::refused(id, error))?;
    Ok(folder_in(id, peek.thread.settings()))
}

/// Returns a thread with the working directory of these settings.
pub(crate) fn folder_in(thread: ThreadId, settings: &Settings) -> ThreadFolder {
    ThreadFolder {
        thread,
        cwd: settings.real(&settings.cwd).to_owned(),
    }
}

/// Whether a new thread works in a copy of its own. Rejects an unknown mode, because the client relies
/// on it.
pub(crate) fn is_copied(
    mode: Option<&WorkspaceMode>,
    is_ephemeral: bool,
) -> Result<bool, WireError> {
    match mode.unwrap_or(&WorkspaceMode::Shared) {
        WorkspaceMode::Shared => Ok(false),
        WorkspaceMode::Copy if is_ephemeral => Err(WireError::Refused(
            "an ephemeral thread cannot work in a copy: leave out `ephemeral` or `workspace`"
                .into(),
        )),
        WorkspaceMode::Copy => Ok(true),
        WorkspaceMode::Unrecognized(it) => {
            Err(lists::unknown("workspace", it, WorkspaceMode::KNOWN))
        }
    }
}

/// Copies the workspace of a new thread with these settings. Returns the change by which its folders
/// are those of the copy.
pub(crate) async fn copied(
    state: &ServerState,
    id: ThreadId,
    settings: &Settings,
    fork: Option<ForkedFiles>,
) -> Result<(SettingsChange, CreatedCopy), WireError> {
    let request = NewCopy {
        cwd: settings.real(&settings.cwd).to_owned(),
        folders: settings.folders().cloned().collect(),
        fork,
    };
    let copy = state.copies.create(id, request).await?;
    let change = SettingsChange {
        cwd: Some(copy.cwd.clone()),
        ..SettingsChange::of_folders(settings).with_paths(&copy.folders)
    };
    let folders = change.folders().cloned().collect();
    match real_paths(state, folders, settings).await {
        Ok(real_paths) => {
            let change = SettingsChange {
                real_paths: Some(real_paths),
                ..change
            };
            Ok((change, copy))
        }
        Err(error) => {
            if copy.is_new {
                abandon_copy(&*state.copies, id).await;
            }
            Err(error)
        }
    }
}

/// Removes the new copy of a thread that did not start.
pub(crate) async fn abandon_copy(copies: &dyn WorkspaceCopies, id: ThreadId) {
    if let Err(error) = copies.abandon(id).await {
        tracing::warn!(thread = %id, %error, "the copy of a thread that did not start remains");
    }
}

/// Returns the real path of each folder. If a link leads there from a folder that commands were
/// allowed to write, the target must be in that folder too, because commands may have created the
/// link; or the settings must already have the same target.
pub(crate) async fn real_paths(
    state: &ServerState,
    folders: Vec<String>,
    known: &Settings,
) -> Result<BTreeMap<String, String>, WireError> {
    let holds = state.sandbox.holds().clone();
    let known = known.real_paths.clone();
    let lookup = tokio::task::spawn_blocking(move || look_up(folders, &known, holds.written()));
    lookup.await.map_err(std::io::Error::other)?
}

fn look_up(
    folders: Vec<String>,
    known: &BTreeMap<String, String>,
    written: &WrittenFolders,
) -> Result<BTreeMap<String, String>, WireError> {
    let mut real_paths = BTreeMap::new();
    for folder in folders {
        let Ok(path) = PolicyPath::of(Path::new(&folder)) else {
            // Using the folder fails with the same error, and reports it.
            continue;
        };
        let is_known = |real: &String| Path::new(real) == path.real;
        let is_known = known.get(&folder).is_some_and(is_known);
        let links = match is_known {
            true => &[],
            false => &path.links[..],
        };
        let written = match links {
            [] => BTreeSet::new(),
            _ => written.all()?,
        };
        for link in links {
            let writable_parents = written_around(&written, link);
            if writable_parents.iter().any(|it| !path.real.starts_with(it)) {
                return Err(WireError::Refused(
                    format!(
                        "{folder} leads to {} by the link {}, which a command may have made; remove the \
                         link, or name the real folder",
                        path.real.display(),
                        link.display()
                    )
                    .into(),
                ));
            }
        }
        // A path that is not UTF-8 cannot be stored, and is used only if no link leads to it.
        if let Ok(real) = path.real.into_os_string().into_string() {
            real_paths.insert(folder, real);
        }
    }
    Ok(real_paths)
}

/// Returns the folders around a link that commands may have written.
fn written_around(written: &BTreeSet<PathBuf>, link: &Path) -> Vec<PathBuf> {
    let (tmp, tmpdir) = scratch_folders();
    let scratch = std::iter::once(tmp).chain(tmpdir);
    // The top of the user's home is protected, also where the home is a workspace.
    let is_at_top = link.parent() == home().as_deref();
    let is_protected = |it: &PathBuf| is_at_top && is_around_home(it);
    let candidates = written.iter().chain(scratch);
    let candidates = candidates.filter(|it| link.starts_with(it) && !is_protected(it));
    candidates
        .filter(|it| it.parent().is_some())
        .cloned()
        .collect()
}
