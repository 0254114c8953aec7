//! Patches, checked by a plain reader of diffs.
//!
//! An input is the content of a file, a NUL, and a patch. If the patch can be planned, then the
//! diff that users see leads to the written content, and nothing else is written.
#![cfg_attr(fuzzing, no_main)]

#[path = "../../crates/raddle-tools/tests/it/unified.rs"]
mod unified;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use raddle_sandbox::{Policy, SandboxRules};
use raddle_tools::files::{Contents, Roots};
use raddle_tools::patch::{in_command, plan};

/// Directory of the file, in memory where possible, because it is written for every input.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    let directory = if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    directory.join(format!("raddle-fuzz-patch-{}", std::process::id()))
});

fuzz::target!(|input: &[u8]| {
    let Ok(input) = std::str::from_utf8(input) else {
        return;
    };
    let (base, patch) = input.split_once('\0').unwrap_or(("", input));
    let _ = in_command(patch);
    let _ = fs::remove_dir_all(&*FOLDER);
    fs::create_dir_all(&*FOLDER).expect("a folder");
    fs::write(FOLDER.join("a.txt"), base).expect("a file");
    let rules = SandboxRules::workspace_write(vec![FOLDER.clone()]);
    let roots = Roots::new(&FOLDER, &Policy::Confined(rules)).expect("roots");
    if let Ok(planned) = plan(&roots, patch)
        && !planned.is_beyond()
    {
        for change in planned.changes() {
            let is_update = change.diff.starts_with("@@ ");
            let file = planned
                .files
                .iter()
                .find(|it| it.target.shown == Path::new(&change.path));
            let file = file.expect("the change is of a file");
            let end = file.moved_to.map_or(file, |it| &planned.files[it]);
            let text =
                |it: &Option<Contents>| it.as_ref().and_then(Contents::text).map(str::to_owned);
            if let (Some(before), Some(now), true) = (text(&file.base), text(&end.now), is_update) {
                assert_eq!(unified::apply_unified(&before, &change.diff), now);
            }
        }
        // A directory in place of a file cannot be patched; nothing is written then.
        if planned.apply(&roots).is_ok() {
            for file in &planned.files {
                let content = fs::read(&file.target.plain).ok();
                assert_eq!(content, file.now.as_ref().map(|it| it.bytes.clone()));
            }
        } else {
            assert_eq!(
                fs::read_to_string(FOLDER.join("a.txt")).expect("the file"),
                base
            );
        }
    }
    let _ = fs::remove_dir_all(&*FOLDER);
});
