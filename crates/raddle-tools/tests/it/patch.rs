//! Applies every case of `patch/cases/` to a folder of its own, with the newest system calls and
//! without.
//!
//! ```text
//! == name of the case
//! < PATH CONTENT        a file before
//! ...                   the patch, without its first and last line
//! > PATH CONTENT        a file after
//! ~ M PATH              a line of the summary for the model; optional
//! ! words               or: words of the error, and then nothing changes
//! ```
//!
//! `⏎` is a newline, `␍` a carriage return, `␀` a NUL, `␣` a space, `⇥` a tab, `�` a byte that is
//! not text. With a line `raw`, the patch is used as it is.

mod commands;
mod property;

use std::collections::BTreeMap;
use std::path::Path;

use raddle_core::ChangeKind;
use raddle_tools::files::Roots;
use raddle_tools::patch::plan;

use crate::support::TestWorkspace;
use crate::unified::apply_unified;

#[derive(Default)]
struct PatchCase {
    name: String,
    before: BTreeMap<String, Vec<u8>>,
    after: BTreeMap<String, Vec<u8>>,
    patch: String,
    summary_lines: Vec<String>,
    fails: Option<String>,
}

#[test]
fn every_case() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/patch/cases");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("cases") {
        let path = entry.expect("a file").path();
        let cases = std::fs::read_to_string(&path).expect("text");
        for case in cases.split("\n== ").skip(1) {
            let case = read(case);
            let name = format!("{}: {}", path.display(), case.name);
            run_case(&case, &name, |it| it);
            run_case(&case, &name, Roots::on_an_older_kernel);
            count += 1;
        }
    }
    assert!(count >= 200, "only {count} cases were found");
}

/// Patches that would keep a naive matcher busy for hours are rejected quickly.
#[test]
fn laborious_patches_end() {
    let world = TestWorkspace::new();
    world.write("a.txt", "a\n".repeat(300_000));
    let blank = "\n".repeat(100_000);
    let same = " a\n".repeat(50_000);
    let many = "@@\n-a\n+a \n".repeat(20_000);
    // Matched only by the third, tolerant search, at the end, once for every section.
    world.write("z.txt", format!("{}z \n", "a\n".repeat(300_000)));
    let sections = "*** Update File: z.txt\n@@\n-z\n+z \n".repeat(900);
    // Long lines are expensive to compare.
    let long = "x".repeat(4_000);
    world.write("x.txt", format!("{long}\n").repeat(3_000));
    let long = format!(" {long}\n").repeat(1_500);
    let cases = [
        (
            format!("*** Update File: a.txt\n@@\n{same}-b\n"),
            Some("not found"),
        ),
        (
            format!("*** Update File: a.txt\n@@\n-a\n{blank} b\n"),
            Some("not found"),
        ),
        (
            format!("*** Update File: a.txt\n@@\n-b\n{blank}"),
            Some("not found"),
        ),
        (format!("*** Update File: a.txt\n{many}"), None),
        (sections, Some("not found")),
        (
            format!("*** Update File: x.txt\n@@\n{long}-b\n"),
            Some("not found"),
        ),
        (
            "*** Add File: b\n".repeat(2_000),
            Some("more than 1000 sections"),
        ),
    ];
    for (patch, words) in cases {
        let patch = format!("*** Begin Patch\n{patch}*** End Patch\n");
        let error = plan(&world.roots(), &patch).err().map(|it| it.to_string());
        let is_expected = match (&error, words) {
            (Some(error), Some(words)) => error.contains(words),
            (error, words) => error.is_none() && words.is_none(),
        };
        assert!(is_expected, "{words:?}: {error:?}");
    }
}

fn run_case(case: &PatchCase, name: &str, kernel: fn(Roots) -> Roots) {
    let world = TestWorkspace::new();
    for (path, bytes) in &case.before {
        world.write(path, bytes);
    }
    let roots = kernel(world.roots());
    let planned = match (plan(&roots, &case.patch), &case.fails) {
        (Ok(planned), None) => planned,
        (Err(error), Some(words)) => {
            let error = error
                .to_string()
                .replace(&world.work.display().to_string(), "");
            assert!(error.contains(words), "{name}: {error}");
            assert_eq!(world.files(), case.before, "{name}");
            return;
        }
        (Ok(_), Some(_)) => panic!("{name}: it does not fail"),
        (Err(error), None) => panic!("{name}: {error}"),
    };
    assert_eq!(
        world.files(),
        case.before,
        "{name}: looking changed something"
    );
    for change in planned.changes() {
        let base = &case.before.get(relative(&world, &change.path));
        // Binary contents are not shown, only the text that replaces them.
        let base = base.map(|it| text(it).unwrap_or_default());
        let (now, path) = match &change.kind {
            ChangeKind::Add {} => (change.diff.clone(), &change.path),
            ChangeKind::Update { moved_to } => {
                let path = moved_to.as_ref().unwrap_or(&change.path);
                (apply_unified(&base.expect("a base"), &change.diff), path)
            }
            ChangeKind::Delete {} => continue,
        };
        let expected = text(&case.after[relative(&world, path)]);
        assert_eq!(now, expected.unwrap_or_default(), "{name}: the diff");
    }
    let applied = planned.apply(&roots).expect(name);
    assert_eq!(shown(&world.files()), shown(&case.after), "{name}");
    let summary = applied
        .summary
        .replace(&format!("{}/", world.work.display()), "");
    for line in &case.summary_lines {
        assert!(summary.lines().any(|it| it == line), "{name}: {summary}");
    }
}

fn text(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8(bytes.to_owned()).ok()?;
    (!text.contains('\0')).then_some(text)
}

fn relative<'a>(world: &TestWorkspace, path: &'a str) -> &'a str {
    let path = Path::new(path)
        .strip_prefix(&world.work)
        .expect("it is in the workspace");
    path.to_str().expect("text")
}

/// Formats files for a failure message.
fn shown(files: &BTreeMap<String, Vec<u8>>) -> BTreeMap<&str, String> {
    let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    files
        .iter()
        .map(|(path, it)| (path.as_str(), show(it)))
        .collect()
}

fn read(text: &str) -> PatchCase {
    let mut case = PatchCase::default();
    let (name, body) = text.split_once('\n').expect("a case has lines");
    case.name = name.to_owned();
    let (mut patch, mut is_raw) = (String::new(), false);
    let file = |line: &str| {
        let (path, content) = line.split_once(' ').unwrap_or((line, ""));
        (plain(path), bytes(content))
    };
    for line in body.trim_end_matches('\n').split('\n') {
        match (line.get(..2), line.get(2..)) {
            (Some("< "), Some(rest)) => case.before.extend([file(rest)]),
            (Some("> "), Some(rest)) => case.after.extend([file(rest)]),
            (Some("~ "), Some(rest)) => case.summary_lines.push(rest.to_owned()),
            (Some("! "), Some(rest)) => case.fails = Some(rest.to_owned()),
            _ if line == "raw" => is_raw = true,
            _ => patch.push_str(&format!("{}\n", plain(line))),
        }
    }
    case.patch = match is_raw {
        true => patch,
        false => format!("*** Begin Patch\n{patch}*** End Patch\n"),
    };
    case
}

fn plain(text: &str) -> String {
    let text = text.replace('⏎', "\n").replace('␍', "\r");
    text.replace('␀', "\0").replace('␣', " ").replace('⇥', "\t")
}

fn bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, part) in plain(text).split('�').enumerate() {
        if index > 0 {
            bytes.push(0xff);
        }
        bytes.extend(part.as_bytes());
    }
    bytes
}
