//! Rules of a managed file that users other than root can write.

use raddle_core::policy::{Layer, Rule, Verdict};

/// Moves rules that allow to the user's layer, and returns a warning. Rules that restrict stay the
/// operator's: they only tighten.
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
