//! Whether a file can be the operator's.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use raddle_core::policy::{Layer, Rule, Verdict};

/// Whether nobody but root can have written a file, nor put it where it is.
pub(super) fn is_operators(path: &Path) -> bool {
    let is_roots = |it: &Path| {
        let about = fs::symlink_metadata(it);
        about.is_ok_and(|it| it.uid() == 0 && it.mode() & 0o022 == 0)
    };
    let real = fs::canonicalize(path);
    // A link on the way is as good as the folder it stands in.
    let named = path.parent().and_then(|it| fs::canonicalize(it).ok());
    real.is_ok_and(|it| it.ancestors().all(is_roots))
        && named.is_some_and(|it| it.ancestors().all(is_roots))
}

/// Makes rules that allow the user's, and says so. Those that restrain stay the operator's: they only tighten.
pub(super) fn disown(rules: &mut [Rule]) -> Option<String> {
    let mut allowing = rules.iter_mut().filter(|it| it.verdict == Verdict::Allow);
    let first = allowing.next()?;
    first.layer = Layer::User;
    allowing.for_each(|it| it.layer = Layer::User);
    Some(
        "others than root can write this file or a folder around it, so its rules that allow count as the user's"
            .to_owned(),
    )
}
