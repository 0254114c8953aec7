//! Rules of a file that others than the operator can have written.

use raddle_core::policy::{Layer, Rule, Verdict};

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
