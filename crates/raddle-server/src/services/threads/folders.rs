//! The real paths of the folders that a client names.
//!
//! A folder that a client names becomes one that commands may write. Another thread, whose workspace is around it, can
//! put a link in its place. So a link is looked at once, when the client names the folder, and what it leads to is
//! stored with the settings: see [`Settings::real_paths`]. A link that a command may have made is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use raddle_core::{Sandbox, Settings, SettingsChange, ThreadId};
use raddle_sandbox::{PolicyPath, WrittenFolders, home, is_around_home, scratch_folders};

use crate::services::ServerState;
use crate::wire_error::WireError;

/// A change of a thread's settings with the real paths of the folders that it names.
pub(crate) async fn resolved(
    rooms: &ServerState,
    id: ThreadId,
    change: SettingsChange,
) -> Result<SettingsChange, WireError> {
    let named = change.cwd.iter();
    let named = named.chain(change.roots.iter().flatten());
    let beside = change.sandbox.iter().flat_map(Sandbox::roots);
    let folders: Vec<String> = named.chain(beside).cloned().collect();
    if folders.is_empty() {
        return Ok(change);
    }
    // A thread that cannot be looked at refuses the change itself, and says why.
    let Ok(peek) = rooms.threads.peek(id).await else {
        return Ok(change);
    };
    let real_paths = real_paths(rooms, folders, peek.thread.settings()).await?;
    Ok(SettingsChange {
        real_paths: Some(real_paths),
        ..change
    })
}

/// The settings of a new thread with the real paths of the folders that they name.
pub(crate) async fn resolved_settings(
    rooms: &ServerState,
    settings: Settings,
) -> Result<Settings, WireError> {
    let folders = settings.folders().cloned().collect();
    let change = SettingsChange {
        real_paths: Some(real_paths(rooms, folders, &Settings::default()).await?),
        ..SettingsChange::default()
    };
    Ok(change.applied_to(&settings))
}

/// The real path of each folder. One that is reached by a link in a folder that commands have been allowed to write must
/// lie in that folder too, because commands may have made the link; or it is the one that the settings have already.
pub(crate) async fn real_paths(
    rooms: &ServerState,
    folders: Vec<String>,
    known: &Settings,
) -> Result<BTreeMap<String, String>, WireError> {
    let holds = rooms.sandbox.holds().clone();
    let known = known.real_paths.clone();
    let found = tokio::task::spawn_blocking(move || looked_up(folders, &known, holds.written()));
    found.await.map_err(std::io::Error::other)?
}

fn looked_up(
    folders: Vec<String>,
    known: &BTreeMap<String, String>,
    written: &WrittenFolders,
) -> Result<BTreeMap<String, String>, WireError> {
    let mut real_paths = BTreeMap::new();
    for folder in folders {
        let Ok(path) = PolicyPath::of(Path::new(&folder)) else {
            // Its user meets the same error, and says which.
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
            let around = written_around(&written, link);
            if around.iter().any(|it| !path.real.starts_with(it)) {
                return Err(WireError::Refused(
                    format!(
                        "{folder} leads to {} by the link {}, which a command may have made; remove the \
                         link, or name the folder that is meant",
                        path.real.display(),
                        link.display()
                    )
                    .into(),
                ));
            }
        }
        // A path that is not text cannot be stored, and is used only if no link leads to it.
        if let Ok(real) = path.real.into_os_string().into_string() {
            real_paths.insert(folder, real);
        }
    }
    Ok(real_paths)
}

/// The folders around a link that commands may have written.
fn written_around(written: &BTreeSet<PathBuf>, link: &Path) -> Vec<PathBuf> {
    let (tmp, tmpdir) = scratch_folders();
    let scratch = std::iter::once(tmp).chain(tmpdir);
    // The top of the user's home stays as it is, also where the home is a workspace.
    let is_at_top = link.parent() == home().as_deref();
    let is_kept = |it: &PathBuf| is_at_top && is_around_home(it);
    let around = written.iter().chain(scratch);
    let around = around.filter(|it| link.starts_with(it) && !is_kept(it));
    around.filter(|it| it.parent().is_some()).cloned().collect()
}
