//! Paths in a workspace.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

/// Relative path of a file or folder in the workspace, in the bytes of the disk.
///
/// It has at least one component, and none is empty, `.` or `..`. Components are separated by one
/// slash. Names need not be UTF-8.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspacePath(Box<[u8]>);

impl WorkspacePath {
    /// Returns the path, unless it is absolute, empty or leads upwards.
    pub fn new(path: impl AsRef<Path>) -> Option<Self> {
        let mut bytes = Vec::new();
        for component in path.as_ref().components() {
            match component {
                Component::Normal(name) if !name.as_bytes().contains(&0) => {
                    push(&mut bytes, name.as_bytes());
                }
                Component::CurDir => {}
                _ => return None,
            }
        }
        (!bytes.is_empty()).then(|| Self(bytes.into()))
    }

    /// Returns the path of an entry in this folder.
    pub(crate) fn join(folder: Option<&Self>, name: &[u8]) -> Self {
        let mut bytes = folder.map_or_else(Vec::new, |it| it.0.to_vec());
        push(&mut bytes, name);
        Self(bytes.into())
    }

    /// Returns the path of an entry, of bytes that come from a walk of the disk.
    pub(crate) fn from_walk(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    /// Returns the path as it is used with the disk.
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// Returns the bytes of the path.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the folder of the path; `None` for an entry of the workspace itself.
    pub fn parent(&self) -> Option<Self> {
        let end = self.0.iter().rposition(|it| *it == b'/')?;
        Some(Self(self.0[..end].into()))
    }

    /// Returns the last component.
    pub fn name(&self) -> &[u8] {
        self.0.rsplit(|it| *it == b'/').next().unwrap_or_default()
    }

    /// Returns the components from the workspace on.
    pub fn components(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|it| *it == b'/')
    }

    /// Reports whether the path is `folder` or lies in it.
    pub fn is_within(&self, folder: &Self) -> bool {
        is_within(&self.0, &folder.0)
    }
}

/// Reports whether a path is `folder` or lies in it.
pub(crate) fn is_within(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// Appends a component.
pub(crate) fn push(path: &mut Vec<u8>, name: &[u8]) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_path().display())
    }
}

impl fmt::Debug for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_path())
    }
}
