//! The permissions of a plugin that the user approved, in a file of the home.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use raddle_config::clock::now_s;
use serde::{Deserialize, Serialize};

use super::inspection::InspectedPlugin;
use super::plugin_file::{PluginFile, PluginFileError};

/// Limit: approved permissions of one plugin; beyond it, a further approval is not stored, and the
/// plugin receives an error.
const APPROVED_MAX: usize = 100;

/// Name of the principal that approves by trust in the files of a plugin.
const TRUST: &str = "raddle plugin trust";

/// Longest name of a principal that is stored.
const PRINCIPAL_BYTES_MAX: usize = 200;

/// Approved permissions of one plugin. Cheap to clone; each method blocks on the disk.
#[derive(Clone, Debug)]
pub struct PermissionStore {
    file: PluginFile,
}

/// The approval of a permission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionApproval {
    /// Principal that approved it.
    pub by: String,
    /// Time of the approval, in seconds since 1970.
    pub at: u64,
}

/// Reason why an approval is not stored.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApprovalError {
    #[error(transparent)]
    File(#[from] PluginFileError),
    #[error("{APPROVED_MAX} permissions of the plugin are approved; revoke one first")]
    TooMany,
    #[error("the plugin is changed, disabled or removed")]
    Stopped,
}

/// Content of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ApprovedPermissions {
    /// Hash of the files that the approvals are for.
    hash: String,
    approved: BTreeMap<String, PermissionApproval>,
}

impl PermissionStore {
    /// Returns the store of the plugin with this id, in this home.
    pub fn of(home: &Path, id: &str) -> Self {
        let file = PluginFile::new(home, id, "permissions.json");
        Self { file }
    }

    /// Returns the permissions that are approved for files with this hash.
    pub fn approved(
        &self,
        hash: &str,
    ) -> Result<BTreeMap<String, PermissionApproval>, PluginFileError> {
        let stored: ApprovedPermissions = self.file.read()?;
        Ok(match stored.hash == hash {
            true => stored.approved,
            false => BTreeMap::new(),
        })
    }

    /// Stores an approval for files with this hash, unless the plugin is stopped meanwhile. Approvals
    /// for other files are dropped.
    pub(super) fn approve(
        &self,
        hash: &str,
        permission: &str,
        mut by: String,
        is_stopped: &AtomicBool,
    ) -> Result<(), ApprovalError> {
        by.truncate(by.floor_char_boundary(PRINCIPAL_BYTES_MAX));
        let at = now_s();
        self.file.update(|stored: &mut ApprovedPermissions| {
            // A late approval must not write the file again once the plugin is removed.
            if is_stopped.load(Ordering::Relaxed) {
                return Err(ApprovalError::Stopped);
            }
            if stored.hash != hash {
                *stored = ApprovedPermissions {
                    hash: hash.to_owned(),
                    approved: BTreeMap::new(),
                };
            }
            if stored.approved.len() >= APPROVED_MAX {
                return Err(ApprovalError::TooMany);
            }
            let approval = PermissionApproval { by, at };
            stored.approved.insert(permission.to_owned(), approval);
            Ok(())
        })
    }

    /// Approves the hosts of a plugin, which the user trusts. Its process has them from its start,
    /// before it can ask.
    pub fn approve_network(&self, plugin: &InspectedPlugin) -> Result<(), PluginFileError> {
        let is_stopped = AtomicBool::new(false);
        for permission in plugin.manifest.network_permissions() {
            let by = TRUST.to_owned();
            match self.approve(&plugin.hash.text, permission, by, &is_stopped) {
                // The others are asked about.
                Ok(()) | Err(ApprovalError::TooMany | ApprovalError::Stopped) => {}
                Err(ApprovalError::File(error)) => return Err(error),
            }
        }
        Ok(())
    }

    /// Removes the approval of one permission, or of all for `None`. Returns those that were
    /// approved.
    pub fn revoke(&self, permission: Option<&str>) -> Result<Vec<String>, PluginFileError> {
        let stored: ApprovedPermissions = self.file.read()?;
        if stored.approved.is_empty() {
            return Ok(Vec::new());
        }
        self.file.update(|stored: &mut ApprovedPermissions| {
            let is_revoked = |name: &str| permission.is_none_or(|it| it == name);
            let all = std::mem::take(&mut stored.approved);
            let (revoked, kept): (Vec<_>, Vec<_>) =
                all.into_iter().partition(|(name, _)| is_revoked(name));
            stored.approved = kept.into_iter().collect();
            Ok(revoked.into_iter().map(|(name, _)| name).collect())
        })
    }

    /// Removes the approvals unless they are for files with this hash.
    pub fn keep_only(&self, hash: &str) -> Result<(), PluginFileError> {
        match self.file.read::<ApprovedPermissions>() {
            Ok(stored) if stored.hash == hash => Ok(()),
            Ok(_) | Err(PluginFileError::Malformed { .. }) => self.file.remove(),
            Err(error) => Err(error),
        }
    }

    /// Removes the file.
    pub fn remove(&self) -> Result<(), PluginFileError> {
        self.file.remove()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    static NOT_STOPPED: AtomicBool = AtomicBool::new(false);

    #[test]
    fn approvals_are_of_one_plugin_and_its_files_and_can_be_revoked() {
        let home = tempfile::tempdir().expect("a home");
        let store = PermissionStore::of(home.path(), "org.example");
        let names = |hash: &str| {
            let approved = store.approved(hash).expect("a file");
            approved.into_keys().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names("a"), "");
        assert_eq!(store.revoke(None).expect("no file"), Vec::<String>::new());
        for permission in ["workspace.read", "command.run"] {
            let stored = store.approve("a", permission, "ann".to_owned(), &NOT_STOPPED);
            stored.expect("it is stored");
        }
        assert_eq!(
            (names("a"), names("b")),
            ("command.run workspace.read".to_owned(), String::new())
        );
        let approval = &store.approved("a").expect("a file")["command.run"];
        assert!(
            approval.by == "ann" && approval.at > 1_700_000_000,
            "{approval:?}"
        );
        let other = PermissionStore::of(home.path(), "org.other");
        assert!(other.approved("a").expect("no file").is_empty());
        let path = home.path().join("plugins/org.example.permissions.json");
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        store.keep_only("a").expect("a file");
        let revoked = store.revoke(Some("command.run")).expect("a file");
        assert_eq!(revoked, ["command.run"]);
        let revoked = store.revoke(Some("command.run")).expect("a file");
        assert_eq!(
            (revoked, names("a")),
            (Vec::new(), "workspace.read".to_owned())
        );
        // An approval for other files replaces all of the old ones.
        let stored = store.approve("b", "model.call", "ann".to_owned(), &NOT_STOPPED);
        stored.expect("it is stored");
        assert_eq!(
            (names("a"), names("b")),
            (String::new(), "model.call".to_owned())
        );
        store.keep_only("a").expect("a file");
        assert!(!path.exists());
        fs::write(&path, "no json").expect("a file");
        let error = store.approved("a").expect_err("malformed");
        assert!(error.to_string().contains("remove it"), "{error}");
    }

    #[test]
    fn the_number_of_approvals_is_limited() {
        let home = tempfile::tempdir().expect("a home");
        let store = PermissionStore::of(home.path(), "org.example");
        let approve = |number: usize| {
            let permission = format!("secrets:S{number}");
            store.approve("a", &permission, "x".repeat(10_000), &NOT_STOPPED)
        };
        for number in 0..APPROVED_MAX {
            approve(number).expect("it is stored");
        }
        let error = approve(APPROVED_MAX).expect_err("too many");
        assert!(matches!(error, ApprovalError::TooMany), "{error}");
        assert_eq!(store.approved("a").expect("a file").len(), APPROVED_MAX);
    }
}
