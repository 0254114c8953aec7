use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use raddle_sandbox::{Policy, SandboxRules};

use super::*;
use crate::patch::plan;

const PATCH: &str = "*** Begin Patch
*** Update File: a.txt
-one
+1
*** Delete File: b.txt
*** Add File: new/c.txt
+3
*** Update File: d.txt
-four
+4
*** End Patch";

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|it| it.expect("an entry").file_name().display().to_string())
        .collect();
    names.sort();
    names
}

/// A concurrent writer changes a file after the check, when some files are already exchanged. Its
/// text stays, and all other files are restored.
#[test]
fn exchanged_files_are_restored_after_a_conflict() {
    type Interference = fn(&Path);
    type FileSet = &'static [(&'static str, Option<&'static str>)];
    let cases: [(&str, Interference, FileSet); 4] = [
        (
            "the last one is another",
            |it| fs::write(it.join("d.txt"), "theirs\n").expect("written"),
            &[("b.txt", Some("two\n")), ("d.txt", Some("theirs\n"))],
        ),
        (
            "the one to be removed is another",
            |it| fs::write(it.join("b.txt"), "theirs\n").expect("written"),
            &[("b.txt", Some("theirs\n")), ("d.txt", Some("four\n"))],
        ),
        (
            "the last one is gone",
            |it| fs::remove_file(it.join("d.txt")).expect("gone"),
            &[("b.txt", Some("two\n")), ("d.txt", None)],
        ),
        (
            "the last one is a link",
            |it| {
                fs::remove_file(it.join("d.txt")).expect("gone");
                symlink("a.txt", it.join("d.txt")).expect("a link");
            },
            &[("b.txt", Some("two\n")), ("d.txt", Some("one\n"))],
        ),
    ];
    for (name, interfere, expected) in cases {
        for is_older in [false, true] {
            let folder = tempfile::tempdir().expect("a folder");
            let at = |name: &str| folder.path().join(name);
            for (name, text) in [("a.txt", "one\n"), ("b.txt", "two\n"), ("d.txt", "four\n")] {
                fs::write(at(name), text).expect("a file");
            }
            let rules = SandboxRules::workspace_write(vec![folder.path().to_owned()]);
            let roots = Roots::new(folder.path(), &Policy::Confined(rules)).expect("roots");
            let roots = match is_older {
                true => roots.on_an_older_kernel(),
                false => roots,
            };
            let planned = plan(&roots, PATCH).expect("a plan");
            let mut work = SwapJob::new(&roots);
            work.stage_all(&roots, &planned.files).expect("staged");
            interfere(folder.path());
            let error = work.exchange_all(&planned.files).expect_err(name);
            assert!(matches!(error, SwapError::Changed(_)), "{name}: {error:?}");
            assert!(work.undo().is_empty(), "{name}: something stands");
            let rest = [("a.txt", Some("one\n"))];
            for (file, text) in rest.iter().chain(expected) {
                let actual = fs::read_to_string(at(file)).ok();
                assert_eq!(actual.as_deref(), *text, "{name}: {file}");
            }
            let entries = names(folder.path());
            let is_ours = |it: &String| it.starts_with(".raddle-") || it == "new";
            assert!(
                !entries.iter().any(is_ours),
                "{name}: left behind: {entries:?}"
            );
        }
    }
}
