//! The diffs that reviews are about.

use std::fmt;

use super::BoxFuture;
use crate::{ReviewedHunk, Settings};

/// Reads the diffs that reviews are about. It changes nothing.
pub trait ReviewDiffs: fmt::Debug + Send + Sync {
    /// Returns the hunks of a diff in the folder of a thread with these settings; none if the diff
    /// cannot be read. The list may be truncated.
    fn hunks(&self, settings: Settings, diff: ReviewedDiff) -> BoxFuture<'_, Vec<ReviewedHunk>>;
}

/// A diff that a review is about. Without a commit as its end it ends with the files as they are,
/// also those that git does not track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReviewedDiff {
    /// Since the commit that is checked out.
    Uncommitted,
    /// Since the common ancestor of that commit and this branch.
    SinceBranch(String),
    /// From the first parent of this commit to the commit.
    Commit(String),
}

/// No diffs: no hunk is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoReviewDiffs;

impl ReviewDiffs for NoReviewDiffs {
    fn hunks(&self, _: Settings, _: ReviewedDiff) -> BoxFuture<'_, Vec<ReviewedHunk>> {
        Box::pin(std::future::ready(Vec::new()))
    }
}
