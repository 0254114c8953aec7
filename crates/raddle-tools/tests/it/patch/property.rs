//! A patch made from the difference of two texts turns one into the other.

use proptest::prelude::*;
use raddle_tools::files::unified;
use raddle_tools::patch::plan;

use crate::support::TestWorkspace;
use crate::unified::apply_unified;

/// Generates texts of few different lines, so that many positions look alike.
fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("a"),
        Just("b"),
        Just(""),
        Just("    a"),
        Just("-x"),
        Just("+y"),
        Just("@@ z"),
        Just("*** End Patch"),
        Just("“q”"),
        Just("\\ n"),
        Just("end  "),
    ];
    (prop::collection::vec(line, 0..12), any::<bool>()).prop_map(|(lines, is_ended)| {
        let mut text = lines.join("\n");
        if is_ended && !text.is_empty() {
            text.push('\n');
        }
        text
    })
}

/// Returns a patch with the whole file as one chunk, so that its position is unambiguous.
fn patch_of(base: &str, now: &str) -> String {
    let mut patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n".to_owned();
    for line in base.lines() {
        patch.push_str(&format!("-{line}\n"));
    }
    for line in now.lines() {
        patch.push_str(&format!("+{line}\n"));
    }
    if !now.is_empty() && !now.ends_with('\n') {
        patch.push_str("\\ No newline at end of file\n");
    }
    patch + "*** End Patch\n"
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_diff_leads_from_one_text_to_the_other(base in text(), now in text()) {
        prop_assert_eq!(apply_unified(&base, &unified(&base, &now)), now);
    }

    #[test]
    fn a_patch_of_the_difference_leads_there_too(base in text(), now in text(), is_dos in any::<bool>()) {
        prop_assume!(!(base.is_empty() && now.is_empty()));
        let ends = |it: &str| if is_dos && base.contains('\n') { it.replace('\n', "\r\n") } else { it.to_owned() };
        let world = TestWorkspace::new();
        world.write("a.txt", ends(&base));
        let roots = world.roots();
        let planned = plan(&roots, &patch_of(&base, &now));
        let planned = planned.map_err(|it| TestCaseError::fail(it.to_string()))?;
        planned.apply(&roots).map_err(|it| TestCaseError::fail(it.to_string()))?;
        prop_assert_eq!(world.read("a.txt"), ends(&now));
    }

    /// The only hunk of a unified diff is a chunk of a patch, if it shows the whole file.
    #[test]
    fn a_hunk_is_a_chunk(base in text(), now in text()) {
        let hunks = unified(&base, &now);
        let whole = format!("@@ -1,{} ", base.lines().count());
        prop_assume!(hunks.starts_with(&whole));
        let world = TestWorkspace::new();
        world.write("a.txt", &base);
        let roots = world.roots();
        let patch = format!("*** Begin Patch\n*** Update File: a.txt\n{hunks}*** End Patch\n");
        let planned = plan(&roots, &patch);
        let planned = planned.map_err(|it| TestCaseError::fail(it.to_string()))?;
        planned.apply(&roots).map_err(|it| TestCaseError::fail(it.to_string()))?;
        prop_assert_eq!(world.read("a.txt"), now);
    }

    /// Any text gives a plan or an error message; nothing panics.
    #[test]
    fn odd_texts_give_an_error_message(lines in prop::collection::vec("[ +@*-]{0,4}(Begin Patch|End Patch|Update File: a.txt|Add File: b|End of File|Move to: c|[a-c ]{0,3})", 0..12)) {
        let world = TestWorkspace::new();
        world.write("a.txt", "a\nb\nc\n");
        let text = format!("*** Begin Patch\n{}\n*** End Patch", lines.join("\n"));
        if let Err(error) = plan(&world.roots(), &text) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
