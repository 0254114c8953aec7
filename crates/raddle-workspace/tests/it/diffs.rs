//! Kinds of changes, and the patch, which git applies and reverses.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use raddle_workspace::{Content, DiffLimits, FileChangeKind, WorkspaceDiff};

use crate::fixture::{Fixture, check_with_git, git_apply, path, paths, snapshot};

/// Describes each change: kind, paths, and what became of the content.
fn described(diff: &WorkspaceDiff) -> Vec<String> {
    let changes = diff.files.iter().map(|it| {
        let from = it.before.as_ref().map(|it| it.path.to_string());
        let to = it.after.as_ref().map(|it| it.path.to_string());
        let path = match (from, to) {
            (Some(from), Some(to)) if from != to => format!("{from} > {to}"),
            (from, to) => to.or(from).unwrap_or_default(),
        };
        let content = match &it.content {
            Content::Same => "same".to_owned(),
            Content::Text(hunks) => format!("{} hunks", hunks.len()),
            Content::Replaced => "replaced".to_owned(),
            Content::Binary => "binary".to_owned(),
            Content::Omitted => "omitted".to_owned(),
        };
        format!("{:?} {path}: {content}", it.kind)
    });
    changes.collect()
}

/// Makes changes, and checks their description and that git follows the patch both ways.
#[track_caller]
fn check(prepare: impl FnOnce(&Fixture), change: impl FnOnce(&Fixture), expected: &[&str]) {
    let at = Fixture::new();
    prepare(&at);
    let mut workspace = at.open();
    let (first, before) = (snapshot(&mut workspace), at.state());
    change(&at);
    let (second, after) = (snapshot(&mut workspace), at.state());
    let diff = workspace.diff(&first, &second).expect("a diff");
    assert_eq!(described(&diff), expected);
    check_with_git(&before, &after, &diff.unified());
    let back = workspace.diff(&second, &first).expect("a diff");
    check_with_git(&after, &before, &back.unified());
}

#[test]
fn texts_are_added_changed_and_deleted() {
    let text = |changed: &[usize]| -> String {
        let line = |it: usize| match changed.contains(&it) {
            true => format!("line {it} is new\r\n"),
            false => format!("line {it}\n"),
        };
        (0..60).map(line).collect()
    };
    check(
        |at| {
            at.write("changed", text(&[]));
            at.write("deleted", "one\ntwo");
            at.write("emptied", "content\n");
            at.write("no end", "one\ntwo");
            at.write("no end either", "one\ntwo\n");
        },
        |at| {
            at.write("added", "content\n");
            at.write("added and empty", "");
            at.write("changed", text(&[3, 5, 30, 59]));
            at.remove("deleted");
            at.write("emptied", "");
            at.write("no end", "one\ntwo\n");
            at.write("no end either", "one\ntwo\nthree");
        },
        &[
            "Added added: 1 hunks",
            "Added added and empty: 0 hunks",
            "Modified changed: 3 hunks",
            "Deleted deleted: 1 hunks",
            "Modified emptied: 1 hunks",
            "Modified no end: 1 hunks",
            "Modified no end either: 1 hunks",
        ],
    );
}

#[test]
fn modes_links_and_kinds_change() {
    check(
        |at| {
            at.write("executable", "x\n");
            at.write("both", "x\n");
            at.write("for others", "x\n");
            at.write("becomes a link", "x\n");
            at.link("target", "becomes a file");
            at.link("target", "retargeted");
            at.write("becomes a folder", "x\n");
            at.write("becomes/a/file", "x\n");
            at.write("binary becomes a link", [0u8, 1, 2]);
        },
        |at| {
            at.chmod("executable", 0o755);
            at.write("both", "y\n");
            at.chmod("both", 0o700);
            at.chmod("for others", 0o604);
            at.remove("becomes a link");
            at.link("x", "becomes a link");
            at.remove("becomes a file");
            at.write("becomes a file", "y\n");
            at.remove("retargeted");
            at.link("elsewhere", "retargeted");
            at.remove("becomes a folder");
            at.write("becomes a folder/inner", "z\n");
            fs::remove_dir_all(at.path("becomes")).expect("a folder");
            at.write("becomes", "a file\n");
            at.remove("binary becomes a link");
            at.link("y", "binary becomes a link");
        },
        &[
            "Added becomes: 1 hunks",
            "TypeChanged becomes a file: replaced",
            "Deleted becomes a folder: 1 hunks",
            "Added becomes a folder/inner: 1 hunks",
            "TypeChanged becomes a link: replaced",
            "Deleted becomes/a/file: 1 hunks",
            "TypeChanged binary becomes a link: binary",
            "Modified both: 1 hunks",
            "ModeChanged executable: same",
            "ModeChanged for others: same",
            "Modified retargeted: 1 hunks",
        ],
    );
}

#[test]
fn renames_have_a_source() {
    let long = |last: &str| format!("{}{last}\n", "a line of some length\n".repeat(9));
    check(
        |at| {
            at.write("same", "the content\n");
            at.write("similar", long("one"));
            at.write("binary", [0u8, 1, 2, 3]);
            at.write("twice", "copied\n");
            at.write("other", "nothing in common\n");
            at.write("empty", "");
            at.write("nested", "moves into itself\n");
        },
        |at| {
            let rename = |from: &str, to: &str| {
                let content = fs::read(at.path(from)).expect("a file");
                at.remove(from);
                at.write(to, content);
            };
            rename("same", "folder/moved");
            rename("similar", "similar too");
            at.write("similar too", long("two"));
            at.chmod("similar too", 0o755);
            rename("binary", "binary moved");
            rename("twice", "copy 1");
            at.write("copy 2", "copied\n");
            at.remove("other");
            at.write("unrelated", "no line of it\n");
            rename("empty", "empty too");
            rename("nested", "nested/inner");
        },
        &[
            "Renamed binary > binary moved: same",
            "Renamed twice > copy 1: same",
            "Added copy 2: 1 hunks",
            "Deleted empty: 0 hunks",
            "Added empty too: 0 hunks",
            "Renamed same > folder/moved: same",
            "Deleted nested: 1 hunks",
            "Added nested/inner: 1 hunks",
            "Deleted other: 1 hunks",
            "Renamed similar > similar too: 1 hunks",
            "Added unrelated: 1 hunks",
        ],
    );
}

#[test]
fn binary_contents_of_any_length_travel_in_the_patch() {
    let bytes = |length: usize| -> Vec<u8> { (0..length).map(|it| (it * 7 % 256) as u8).collect() };
    let mut rng = support::Rng::new(9);
    let noise: Vec<u8> = (0..25_000).flat_map(|_| rng.bits().to_le_bytes()).collect();
    let lengths = [
        1, 2, 3, 4, 5, 26, 27, 41, 52, 53, 300, 65_535, 65_536, 70_000,
    ];
    check(
        |at| {
            at.write("grows", noise.get(..100).expect("some noise"));
            at.write("vanishes", [0u8, 9]);
            at.write("text becomes binary", "text\n");
        },
        |at| {
            for length in lengths {
                at.write(format!("{length:05}"), bytes(length));
            }
            at.write("grows", &noise);
            at.remove("vanishes");
            at.write("text becomes binary", "text\0");
        },
        &[
            "Added 00001: binary",
            "Added 00002: binary",
            "Added 00003: binary",
            "Added 00004: binary",
            "Added 00005: binary",
            "Added 00026: binary",
            "Added 00027: binary",
            "Added 00041: binary",
            "Added 00052: binary",
            "Added 00053: binary",
            "Added 00300: binary",
            "Added 65535: binary",
            "Added 65536: binary",
            "Added 70000: binary",
            "Modified grows: binary",
            "Modified text becomes binary: binary",
            "Deleted vanishes: binary",
        ],
    );
}

#[test]
fn names_of_any_bytes_are_quoted() {
    let names: [&[u8]; 12] = [
        b" leading and trailing ",
        b"a \"quotation\"",
        b"back\\slash",
        b"bell\x07",
        b"n\xc3\xa9e",
        b"delete\x7f",
        b"folder with space/and file",
        b"invalid \xff\xfe",
        b"new\nline",
        b"tab\tin it",
        b"-dash",
        b"a/b/c => d",
    ];
    let named = |at: &Fixture, content: &[u8]| {
        for name in names {
            at.write(OsStr::from_bytes(name), content);
        }
    };
    let at = Fixture::new();
    let mut workspace = at.open();
    let mut states = vec![(snapshot(&mut workspace), at.state())];
    named(&at, b"one\n");
    states.push((snapshot(&mut workspace), at.state()));
    named(&at, b"one\ntwo\n");
    states.push((snapshot(&mut workspace), at.state()));
    for name in names {
        at.chmod(OsStr::from_bytes(name), 0o755);
    }
    states.push((snapshot(&mut workspace), at.state()));
    for (number, name) in names.iter().enumerate() {
        let from = at.path(OsStr::from_bytes(name));
        let to = [b"to ", *name, format!(" {number}").as_bytes()].concat();
        let to = at.path(OsStr::from_bytes(&to));
        fs::create_dir_all(to.parent().expect("a folder")).expect("folders");
        fs::rename(from, to).expect("a file");
    }
    states.push((snapshot(&mut workspace), at.state()));
    for pair in states.windows(2) {
        let diff = workspace.diff(&pair[0].0, &pair[1].0).expect("a diff");
        assert_eq!(diff.files.len(), names.len());
        check_with_git(&pair[0].1, &pair[1].1, &diff.unified());
    }
}

#[test]
fn large_contents_are_omitted_and_say_so() {
    let at = Fixture::new();
    at.write("text", "line\n".repeat(100));
    at.write("binary", [0u8; 100]);
    let mut workspace = at.open();
    let before = snapshot(&mut workspace);
    at.write("text", "line\n".repeat(101));
    at.write("binary", [0u8; 101]);
    let after = snapshot(&mut workspace);
    let limits = DiffLimits {
        text_bytes_max: 504,
        binary_bytes_max: 100,
        ..DiffLimits::default()
    };
    let diff = workspace
        .diff_within(&before, &after, &limits)
        .expect("a diff");
    assert_eq!(
        described(&diff),
        ["Modified binary: omitted", "Modified text: omitted"]
    );
    let text = String::from_utf8(diff.unified()).expect("text");
    assert!(
        text.contains("Binary files a/text and b/text differ\n"),
        "{text}"
    );
    // It is not applied in part.
    assert!(!git_apply(&at.folder, text.as_bytes(), &[]).status.success());
}

#[test]
fn patches_together_have_a_limit() {
    let at = Fixture::new();
    at.write("c", "x\n");
    let mut workspace = at.open();
    let before = snapshot(&mut workspace);
    at.write("a", "line\n".repeat(60));
    // Too large by its size alone, so the files after it have their patches.
    at.write("b", "line\n".repeat(400));
    at.write("c", "line\n".repeat(50));
    at.write("d", "line\n".repeat(390));
    at.write("e", "x\n");
    let after = snapshot(&mut workspace);
    let limits = DiffLimits {
        total_bytes_max: 1_800,
        ..DiffLimits::default()
    };
    let diff = workspace
        .diff_within(&before, &after, &limits)
        .expect("a diff");
    let expected = [
        "Added a: 1 hunks",
        "Added b: omitted",
        "Modified c: 1 hunks",
        "Added d: omitted",
        "Added e: 1 hunks",
    ];
    assert_eq!(described(&diff), expected);
    let shown = diff
        .files
        .iter()
        .filter(|it| it.content != Content::Omitted);
    let bytes: usize = shown.map(|it| it.patch.len()).sum();
    assert!(bytes < 1_800, "{bytes}");
    assert!(!git_apply(&at.folder, &diff.unified(), &[]).status.success());

    // A patch that proves too large only when it is made ends the diff.
    at.write("c", "LINE\n".repeat(50));
    at.write("f", "x\n");
    let last = snapshot(&mut workspace);
    let limits = DiffLimits {
        total_bytes_max: 300,
        ..limits
    };
    let diff = workspace
        .diff_within(&after, &last, &limits)
        .expect("a diff");
    let expected = ["Modified c: omitted", "Added f: omitted"];
    assert_eq!(described(&diff), expected);
}

#[test]
fn hunk_ids_stay_when_other_lines_move() {
    let at = Fixture::new();
    let line = |it: usize| format!("line {it}\n");
    let text = |skipped: &[usize]| -> String {
        (0..100)
            .filter(|it| !skipped.contains(it))
            .map(line)
            .collect()
    };
    at.write("file", text(&[]));
    let mut workspace = at.open();
    let before = snapshot(&mut workspace);
    let mut ids = |content: String| -> Vec<String> {
        at.write("file", content);
        let after = snapshot(&mut workspace);
        let diff = workspace.diff(&before, &after).expect("a diff");
        let hunks = diff.files.first().expect("a change").hunks().iter();
        hunks.map(|it| it.id.clone()).collect()
    };
    let both = ids(text(&[10, 90]));
    assert_eq!(both.len(), 2);
    assert_ne!(both[0], both[1]);
    assert_eq!(ids(text(&[90])), both[1..]);
    assert_eq!(ids(text(&[10])), both[..1]);
    assert_eq!(ids(format!("{}\n", text(&[10, 90])))[..2], both);
}

#[test]
fn ignored_file_that_the_agent_wrote_shows() {
    let at = Fixture::new();
    at.write(".gitignore", "/dist\n");
    at.write("dist/old", "old\n");
    let mut workspace = at.open();
    let named = paths(&["dist/new"]);
    let before = workspace.snapshot(&named).expect("a snapshot");
    at.write("dist/new", "new\n");
    at.write("dist/old", "changed by a command\n");
    let after = workspace.snapshot(&named).expect("a snapshot");
    let diff = workspace.diff(&before, &after).expect("a diff");
    assert_eq!(described(&diff), ["Added dist/new: 1 hunks"]);
    assert_eq!(diff.gaps.len(), 1);
    assert_eq!(diff.files[0].kind, FileChangeKind::Added);
}

#[test]
fn new_rule_hides_no_change_of_a_covered_file() {
    // Rules before and after, and the changes that show besides those of the covered files.
    let cases: [(Option<&str>, &str, &[&str]); 5] = [
        (None, "*\n", &[]),
        (
            None,
            "/folder/\nchanged\ndeleted\nbecomes*\nnew\n",
            &["Added .gitignore: 1 hunks"],
        ),
        (Some("*.o\n"), "*\n", &["Modified .gitignore: 1 hunks"]),
        (Some("new\n"), "*\nnew\n", &["Modified .gitignore: 1 hunks"]),
        (Some("*.o\nnew\n"), "*.o\nnew\n", &[]),
    ];
    for (rules_before, rules_after, shown) in cases {
        for is_reopened in [false, true] {
            let at = Fixture::new();
            let covered = [
                "becomes a folder",
                "becomes a file/inner",
                "changed",
                "deleted",
                "folder/changed",
                "folder/deleted",
                "folder/gone/inner",
                "unchanged",
            ];
            for name in covered {
                at.write(name, format!("{name}\n"));
            }
            at.write("folder/before.o", "ignored in some cases\n");
            if let Some(rules) = rules_before {
                at.write(".gitignore", rules);
            }
            let mut workspace = at.open();
            let before = snapshot(&mut workspace);
            if is_reopened {
                drop(workspace);
                workspace = at.open();
            }
            at.write(".gitignore", rules_after);
            at.write("changed", "by the agent\n");
            at.write("folder/changed", "by the agent too\n");
            at.write("new", "not covered\n");
            at.remove("deleted");
            at.remove("folder/deleted");
            fs::remove_dir_all(at.path("folder/gone")).expect("a folder");
            at.remove("becomes a folder");
            fs::create_dir(at.path("becomes a folder")).expect("a folder");
            fs::remove_dir_all(at.path("becomes a file")).expect("a folder");
            at.write("becomes a file", "not covered before\n");
            let after = snapshot(&mut workspace);
            let diff = workspace.diff(&before, &after).expect("a diff");
            let mut expected = vec![
                "Added becomes a file: 1 hunks",
                "Deleted becomes a file/inner: 1 hunks",
                "Deleted becomes a folder: 1 hunks",
                "Modified changed: 1 hunks",
                "Deleted deleted: 1 hunks",
                "Modified folder/changed: 1 hunks",
                "Deleted folder/deleted: 1 hunks",
                "Deleted folder/gone/inner: 1 hunks",
            ];
            expected.splice(0..0, shown.iter().copied());
            assert_eq!(described(&diff), expected, "{rules_after}");
            let is_gap = |it: &str| diff.gaps.iter().any(|gap| gap.path == Some(path(it)));
            assert!(is_gap("new") && !is_gap("changed"), "{:?}", diff.gaps);
            // A third look sees the same files.
            at.write("changed", "again\n");
            let last = snapshot(&mut workspace);
            let diff = workspace.diff(&after, &last).expect("a diff");
            assert_eq!(described(&diff), ["Modified changed: 1 hunks"]);
        }
    }
}
