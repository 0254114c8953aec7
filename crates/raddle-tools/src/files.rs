//! Files of a workspace: reading, listing, searching and writing, never outside the given folders.
//!
//! [`Roots`] defines these folders. A path is first resolved to a plain path, link by link. That
//! plain path is judged, and exactly that path is opened, below a descriptor, without following
//! links. So the judged file is the opened file, even if the disk changes in between.
//!
//! Every tool that writes returns a [`ChangePlan`] first: the changes as an item shows them, with
//! their digest. Applying it writes all of it or nothing, and nothing if a file changed since it
//! was read.

mod change;
mod diff;
mod edit;
mod error;
mod image;
mod list;
mod open;
mod read;
mod read_bytes;
mod roots;
mod search;
mod selection;
mod swap;
mod tree;
mod turn_diff;
mod walk;
mod write;

pub use change::{AppliedChanges, ApplyError, ChangePlan, PlannedFile};
pub use diff::unified;
pub use edit::EditFile;
pub use error::ToolError;
pub use image::{ImageFile, ViewImage};
pub use list::ListFiles;
pub use open::Contents;
pub use read::ReadFile;
pub use read_bytes::ReadBytes;
pub use roots::{ResolvedPath, Roots, WriteAccess};
pub use search::SearchFiles;
pub use selection::{AcceptedPlan, SelectionError};
pub use turn_diff::TurnDiff;
pub use write::WriteFile;

pub(crate) use change::Draft;
pub(crate) use walk::{FinalLink, visited_paths};
