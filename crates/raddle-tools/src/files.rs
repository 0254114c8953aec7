//! Files of a workspace: reading, listing, searching, writing, never outside the folders they are given.
//!
//! [`Roots`] says which folders these are. A path is first followed to the plain path that it means, link by
//! link; that plain path is judged; and exactly that is opened, below a descriptor, with no link followed.
//! So what was judged is what is opened, whatever happens to the disk in between.
//!
//! Every tool that writes gives a [`Planned`] first: what would be written, as an item shows it, with a digest
//! of it. Applying it writes all of it or nothing, and nothing if a file is no longer what was looked at.

mod change;
mod diff;
mod edit;
mod error;
mod image;
mod list;
mod open;
mod read;
mod roots;
mod search;
mod swap;
mod tree;
mod turn_diff;
mod walk;
mod write;

pub use change::{AppliedChanges, ApplyError, ChangePlan, Contents, PlannedFile};
pub use diff::unified;
pub use edit::EditFile;
pub use error::ToolError;
pub use image::{ImageFile, ViewImage};
pub use list::ListFiles;
pub use read::ReadFile;
pub use roots::{ResolvedPath, Roots, WriteAccess};
pub use search::SearchFiles;
pub use turn_diff::TurnDiff;
pub use write::WriteFile;

pub(crate) use change::Draft;
pub(crate) use walk::{FinalLink, passed};
