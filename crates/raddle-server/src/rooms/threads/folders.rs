//! The real paths of the folders that a client names.
//!
//! A folder that a client names becomes one that commands may write. Another thread, whose workspace is around it, can
//! put a link in its place. So a link is looked at once, when the client names the folder, and what it leads to is
//! stored with the settings: see [`Settings::real_paths`]. A link that a command may have made is refused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use raddle_core::ports::ListQuery;
use raddle_core::{Sandbox, Settings, SettingsChange, ThreadId};
use raddle_sandbox::{PolicyPath, home, scratch_folders};

use crate::rooms::Rooms;
use crate::wire_error::WireError;

/// A change of a thread's settings with the real paths of the folders that it names.
pub(crate) async fn resolved(
    rooms: &Rooms,
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
    rooms: &Rooms,
    settings: Settings,
) -> Result<Settings, WireError> {
    let folders = settings.folders().cloned().collect();
    let change = SettingsChange {
        real_paths: Some(real_paths(rooms, folders, &Settings::default()).await?),
        ..SettingsChange::default()
    };
    Ok(change.applied_to(&settings))
}

/// The real path of each folder. One that is reached by a link in a workspace must lie in that workspace too, because
/// commands may have made the link; or it is the one that the settings have already.
pub(crate) async fn real_paths(
    rooms: &Rooms,
    folders: Vec<String>,
    known: &Settings,
) -> Result<BTreeMap<String, String>, WireError> {
    let found = tokio::task::spawn_blocking(move || {
        let found = folders.into_iter().map(|folder| {
            let path = PolicyPath::of(Path::new(&folder));
            (folder, path)
        });
        found.collect::<Vec<_>>()
    });
    let found = found.await.map_err(std::io::Error::other)?;
    let mut real_paths = BTreeMap::new();
    for (folder, path) in found {
        let Ok(path) = path else {
            // Its user meets the same error, and says which.
            continue;
        };
        let is_known = |real: &String| Path::new(real) == path.real;
        let is_known = known.real_paths.get(&folder).is_some_and(is_known);
        for link in path.links.iter().filter(|_| !is_known) {
            let around = writable_around(rooms, link).await;
            if around.iter().any(|it| !path.real.starts_with(it)) {
                return Err(WireError::Refused(
                    format!(
                        "{folder} leads to {} by the link {}, which an agent that works there may have made; remove the \
                         link, or name the folder that is meant",
                        path.real.display(),
                        link.display()
                    )
                    .into(),
                ));
            }
        }
        // What is not text cannot be stored, and is used only if no link leads to it.
        if let Ok(real) = path.real.into_os_string().into_string() {
            real_paths.insert(folder, real);
        }
    }
    Ok(real_paths)
}

/// The folders around a link that commands of a thread may write.
async fn writable_around(rooms: &Rooms, link: &Path) -> Vec<PathBuf> {
    let mut around = Vec::new();
    let (tmp, tmpdir) = scratch_folders();
    around.extend([tmp].into_iter().chain(tmpdir).cloned());
    for id in rooms.threads.loaded() {
        if let Ok(peek) = rooms.threads.peek(id).await {
            let settings = peek.thread.settings();
            let written: Vec<&String> = match &settings.sandbox {
                Sandbox::WorkspaceWrite { .. } => settings.folders().collect(),
                sandbox => sandbox.roots().iter().collect(),
            };
            let rights = peek.thread.rights();
            let written = written.into_iter().chain(&rights.write);
            around.extend(written.map(|it| PathBuf::from(settings.real(it))));
        }
    }
    around.extend(stored_around(rooms, link).await);
    // Whatever commands in the sandbox were let write before, also in another process.
    let holds = rooms.fences.holds().clone();
    match tokio::task::spawn_blocking(move || holds.writable_folders()).await {
        Ok(Ok(noted)) => around.extend(noted),
        Ok(Err(error)) => tracing::error!(%error, "the folders that were writable are not known"),
        Err(error) => tracing::error!(%error, "the folders that were writable are not known"),
    }
    // The top of the user's home stays as it is, also where the home is a workspace.
    let home = home();
    let is_safe = |it: &PathBuf| {
        let is_wide = home.as_ref().is_some_and(|home| home.starts_with(it));
        is_wide && link.parent() == home.as_deref()
    };
    around.retain(|it| link.starts_with(it) && !is_safe(it));
    around
}

/// The folders around a link in which stored threads work, but for the user's home and what is around it.
async fn stored_around(rooms: &Rooms, link: &Path) -> Vec<PathBuf> {
    let home = home();
    let is_wide = |it: &Path| home.as_ref().is_some_and(|home| home.starts_with(it));
    let mut found = Vec::new();
    for folder in link.ancestors().skip(1).filter(|it| !is_wide(it)) {
        let Some(cwd) = folder.to_str() else {
            continue;
        };
        for archived in [false, true] {
            let query = ListQuery {
                cwds: vec![cwd.to_owned()],
                archived,
                limit: 1,
                ..ListQuery::default()
            };
            let page = rooms.threads.list(query).await;
            if page.is_ok_and(|it| !it.entries.is_empty()) {
                found.push(folder.to_owned());
            }
        }
    }
    found
}
