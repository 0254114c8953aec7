//! Rights beyond the sandbox that the agent requests and the user grants, for a turn or for the
//! session.

use raddle_protocol as wire;
use serde_json::{Value, json};

use crate::Grant;

impl Grant {
    /// Parses those rights of the wire's form that can be granted: to write at paths, and to use
    /// the network.
    pub fn of_wire(permissions: &Value) -> Self {
        let profile: Option<wire::RequestPermissionProfile> =
            serde_json::from_value(permissions.clone()).ok();
        let Some(profile) = profile else {
            return Self::default();
        };
        let files = profile.file_system;
        let entries = files.as_ref().and_then(|it| it.entries.as_ref());
        let entries = entries
            .into_iter()
            .flatten()
            .filter_map(|it| match (&it.access, &it.path) {
                (wire::FileSystemAccessMode::Write, wire::FileSystemPath::Path(at)) => {
                    Some(&at.path)
                }
                _ => None,
            });
        let older = files.as_ref().and_then(|it| it.write.as_ref());
        let mut write: Vec<String> = Vec::new();
        for path in older.into_iter().flatten().chain(entries) {
            if !write.contains(path) {
                write.push(path.clone());
            }
        }
        let network = profile.network.and_then(|it| it.enabled);
        Self {
            write,
            network: network.unwrap_or_default(),
            session: false,
        }
    }

    /// Returns these rights in the wire's form.
    pub fn to_wire(&self) -> Value {
        let files = (!self.write.is_empty()).then(|| json!({ "write": self.write }));
        let network = self.network.then(|| json!({ "enabled": true }));
        json!({ "fileSystem": files, "network": network })
    }

    /// Returns the rights of an answer that were also requested. An answer can grant less, and
    /// never more.
    pub fn from_answer(request: &Value, answer: &Value) -> Self {
        let requested = Self::of_wire(request);
        let answered = Self::of_wire(&answer["permissions"]);
        let any = crate::bugs::planted(crate::bugs::Bug::TooManyRights);
        let is_requested = |path: &String| any || requested.write.contains(path);
        Self {
            write: answered.write.into_iter().filter(is_requested).collect(),
            network: answered.network && requested.network,
            session: answer["scope"] == "session",
        }
    }

    /// Whether it grants no rights.
    pub fn is_empty(&self) -> bool {
        self.write.is_empty() && !self.network
    }

    /// Removes the folders that lie in those of another grant.
    pub(crate) fn remove_covered(&mut self, other: &Self) {
        let is_covered = |path: &String| other.write.iter().any(|it| is_within(path, it));
        self.write.retain(|path| !is_covered(path));
    }

    /// Adds the rights of another grant.
    pub(crate) fn add(&mut self, other: &Self) {
        for path in &other.write {
            if !self.write.contains(path) {
                self.write.push(path.clone());
            }
        }
        let surplus = self.write.len().saturating_sub(paths_max());
        self.write.drain(..surplus);
        self.network |= other.network;
    }
}

/// Limit: folders granted until the session ends; beyond it, the oldest grant is dropped.
///
/// A folder of a dropped grant needs approval again.
fn paths_max() -> usize {
    crate::bugs::bound(100, 2)
}

/// Whether a path is `root` or below it. A path with `..` is never within.
fn is_within(path: &str, root: &str) -> bool {
    let mut parts = path.split('/');
    let goes_up = parts.any(|part| part == "..");
    let root = root.trim_end_matches('/');
    let rest = path.strip_prefix(root);
    !goes_up && path.starts_with('/') && rest.is_some_and(|it| it.is_empty() || it.starts_with('/'))
}
