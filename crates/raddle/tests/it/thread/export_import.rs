//! `export` and `import`.

use std::io::Write;

use raddle_core::{Seq, ThreadId};
use raddle_store::Archive;
use serde_json::Value;

use super::{StoredHome, block_on, files, filled};
use crate::records::{ThreadScript, completed};
use crate::support::eventually;
use crate::support::server::command;

/// A thread of a filled home, as a file.
fn exported() -> (StoredHome, ThreadId, String) {
    let (home, [one, ..]) = filled();
    let text = home.good(&["export", &one.to_string()]);
    (home, one, text)
}

#[test]
fn a_thread_moves_to_another_home_with_its_numbers() {
    let (home, threads) = filled();
    let out = home.path().join("files");
    home.good(&["export", "--all", "--out", out.to_str().expect("text")]);
    let other = StoredHome::new();
    for thread in threads {
        let file = out.join(format!("{thread}.jsonl"));
        let file = file.to_str().expect("text");
        assert_eq!(other.good(&["import", file]), format!("{thread}\n"));
        let (old, copy) = (home.records(thread), other.records(thread));
        // Records that close open turns follow those of the file.
        assert_eq!(copy[..old.len()], old);
        assert!(copy.len() > old.len());
        let id = thread.to_string();
        let shown = |home: &StoredHome| {
            let text = home.good(&["show", &id]);
            let lines = text.lines().filter(|it| !it.starts_with("head"));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(shown(&other), shown(&home));
        // Its export there starts the same, except for the chain of the journal.
        let again = other.good(&["export", &id]);
        let lines = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
        let first = std::fs::read_to_string(file).expect("a file");
        let (mut first, mut again) = (lines(&first), lines(&again));
        assert_ne!((first.pop(), again.pop()), (None, None));
        assert_eq!(again[..first.len()], first);
    }
    assert_eq!(other.listed(&[]), home.listed(&[]));
    let verified = other.good(&["verify"]);
    assert_eq!(
        verified
            .lines()
            .filter(|it| it.starts_with("whole"))
            .count(),
        4,
        "{verified}"
    );
    assert_eq!(
        std::fs::read_dir(other.threads().join("imports"))
            .expect("marks")
            .count(),
        0
    );
}

#[test]
fn a_file_holds_a_header_every_record_each_blob_once_and_a_seal() {
    let (home, one, text) = exported();
    let lines: Vec<Value> = text
        .lines()
        .map(|it| serde_json::from_str(it).expect("JSON"))
        .collect();
    let header = &lines[0]["thread"];
    assert_eq!(header["format"], "raddle-thread");
    assert_eq!(header["version"], 1);
    assert_eq!(header["thread"], one.to_string());
    assert_eq!(header["chain"].as_str().map(str::len), Some(32));
    let records: Vec<_> = lines.iter().filter_map(|it| it.get("record")).collect();
    assert_eq!(records.len(), home.records(one).len());
    assert_eq!(
        lines.iter().filter(|it| it.get("blob").is_some()).count(),
        1
    );
    let end = &lines.last().expect("lines")["end"];
    assert_eq!(end["records"], records.len());
    assert_eq!(end["blobs"], 1);
    assert_eq!(end["head"], header["head"]);
}

#[test]
fn a_thread_that_is_there_is_not_replaced() {
    let (home, one, text) = exported();
    let before = home.records(one);
    let output = home.run_with(&["import", "-"], text.as_bytes());
    assert_eq!(output.code, 1);
    assert!(
        output.err.contains("already exists here; give --as-new"),
        "{}",
        output.err
    );
    assert_eq!(home.records(one), before);
    assert_eq!(home.listed(&[]).len(), 3);
}

#[test]
fn as_new_it_is_a_fork() {
    let (home, one, text) = exported();
    let output = home.run_with(&["import", "-", "--as-new"], text.as_bytes());
    assert_eq!(output.code, 0, "{}", output.err);
    let new: ThreadId = output.out.trim().parse().expect("an id");
    assert_ne!(new, one);
    let (old, copy) = (home.records(one), home.records(new));
    assert_eq!(copy[..old.len()], old);
    assert!(copy.len() > old.len());
    assert_eq!(home.listed(&[]).len(), 4);
    assert!(home.listed(&[]).contains(&new.to_string()));
    home.good(&["verify"]);
    // It can be copied like any other.
    let id = new.to_string();
    let other = StoredHome::new();
    let text = home.good(&["export", &id]);
    assert_eq!(other.run_with(&["import", "-"], text.as_bytes()).code, 0);
    assert_eq!(other.records(new)[..copy.len()], copy);
    other.good(&["verify"]);
}

#[test]
fn a_truncated_or_changed_file_is_rejected_and_leaves_nothing() {
    let (_, _, text) = exported();
    let lines: Vec<&str> = text.lines().collect();
    let join = |lines: &[&str]| lines.join("\n") + "\n";
    let without = |at: usize| {
        let mut lines = lines.clone();
        lines.remove(at);
        join(&lines)
    };
    let mut swapped = lines.clone();
    swapped.swap(3, 4);
    let newer = text.replacen("\"version\":1", "\"version\":2", 1);
    let unknown = text.replacen("{\"renamed\":", "{\"rechristened\":", 1);
    let cases = [
        ("nothing", String::new(), "it is empty"),
        (
            "something else",
            "hello\n".repeat(100),
            "this is not an exported thread",
        ),
        (
            "other JSON",
            "{\"a\":1}\n".to_owned(),
            "this is not an exported thread",
        ),
        ("no seal", without(lines.len() - 1), "before its seal"),
        (
            "half a line",
            text[..text.len() / 2].to_owned(),
            "before its seal",
        ),
        (
            "no line end",
            text[..text.len() - 1].to_owned(),
            "before its seal",
        ),
        ("no record", without(3), "was changed"),
        ("two places", join(&swapped), "was changed"),
        (
            "a word",
            text.replacen("first question", "worst question", 1),
            "was changed",
        ),
        (
            "a word of the name",
            text.replacen("the first", "the worst", 1),
            "was changed",
        ),
        (
            "a base64 digit",
            text.replacen("BwcHBwcH", "BwcHBwcI", 1),
            "was changed",
        ),
        ("a kind of record", unknown, "was changed"),
        (
            "another thread's name",
            renamed_header(&text),
            "was changed",
        ),
        ("more", text.clone() + "{}\n", "something follows the seal"),
        (
            "another version",
            newer,
            "a newer version of Raddle wrote this file",
        ),
    ];
    let home = StoredHome::new();
    for (what, text, message) in cases {
        let output = home.run_with(&["import", "-"], text.as_bytes());
        assert_eq!(output.code, 1, "{what}");
        assert!(output.err.contains(message), "{what}: {}", output.err);
        assert_eq!(output.out, "", "{what}");
        assert_eq!(home.listed(&[]), Vec::<String>::new(), "{what}");
    }
    // The rejected files left nothing, and the whole one can still be imported.
    let remaining = files(&home.threads());
    let holds = |bytes: &[u8]| bytes.windows(9).any(|it| it == b"question\"");
    assert!(!remaining.iter().any(|(_, bytes)| holds(bytes)));
    assert_eq!(home.run_with(&["import", "-"], text.as_bytes()).code, 0);
    home.good(&["verify"]);
}

fn renamed_header(text: &str) -> String {
    let (header, rest) = text.split_once('\n').expect("lines");
    let mut header: Value = serde_json::from_str(header).expect("JSON");
    header["thread"]["thread"] = ThreadId::mint().to_string().into();
    format!("{header}\n{rest}")
}

#[test]
fn a_killed_import_leaves_no_visible_thread() {
    let from = StoredHome::new();
    let thread = block_on(async {
        let journal = from.journal();
        let mut script = ThreadScript::new();
        script.start(&journal, "/w").await;
        script.turn(&journal, "t1", "one").await;
        for round in 0..40 {
            let long = format!("{round} ").repeat(10_000);
            let body = completed("t1", &format!("i{round}"), &long);
            script.append(&journal, vec![body]).await;
        }
        script.thread.to_string()
    });
    let text = from.good(&["export", &thread]);
    let home = StoredHome::new();
    let mut command = command(home.path());
    command.args(["thread", "import", "-"]);
    let mut child = command.spawn().expect("the binary starts");
    let mut pipe = child.stdin.take().expect("stdin");
    // Everything but the seal, and then it waits for more.
    let seal = text.trim_end().rfind('\n').expect("lines");
    pipe.write_all(&text.as_bytes()[..seal]).expect("it reads");
    let staged = || {
        let archive = Archive::open(&home.threads()).ok()??;
        let stored = std::fs::read_dir(home.threads().join("imports"))
            .ok()?
            .flatten();
        let ids = stored.filter_map(|it| it.file_name().to_str()?.parse().ok());
        let mut heads = ids.filter_map(|it| archive.records(it, Seq::ZERO, 1).ok());
        heads.next().filter(|records| !records.is_empty())
    };
    eventually("a part of it to be stored", staged);
    child.kill().expect("it runs");
    child.wait().expect("it ended");
    drop(pipe);
    assert_eq!(home.listed(&[]), Vec::<String>::new());
    assert_eq!(home.good(&["verify"]), "whole    the file\n");
    // The next import cleans up after it.
    let output = home.run_with(&["import", "-"], text.as_bytes());
    assert_eq!(output.code, 0, "{}", output.err);
    assert_eq!(home.listed(&[]), [thread]);
    let marks = home.threads().join("imports");
    assert_eq!(std::fs::read_dir(marks).expect("marks").count(), 0);
    assert_eq!(home.good(&["verify"]).lines().count(), 2);
}

/// A process may have died after the import was complete and before its mark was removed.
#[test]
fn a_leftover_mark_does_not_delete_a_thread() {
    let (home, [one, two, _]) = filled();
    let text = home.good(&["export", &one.to_string()]);
    let output = home.run_with(&["import", "--as-new", "-"], text.as_bytes());
    assert_eq!(output.code, 0, "{}", output.err);
    let new = output.out.trim().to_owned();
    let marks = home.threads().join("imports");
    std::fs::write(marks.join(&new), "").expect("a mark");
    let text = home.good(&["export", &two.to_string()]);
    let output = home.run_with(&["import", "--as-new", "-"], text.as_bytes());
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(home.listed(&[]).contains(&new));
    assert_eq!(std::fs::read_dir(marks).expect("marks").count(), 0);
}

#[test]
fn an_export_overwrites_nothing_and_leaves_no_partial_file() {
    let (home, [one, ..]) = filled();
    let id = one.to_string();
    let out = home.path().join("one.jsonl");
    let out = out.to_str().expect("text");
    home.good(&["export", &id, "--out", out]);
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(out).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    std::fs::write(out, "precious").expect("written");
    let output = home.run(&["export", &id, "--out", out]);
    assert_eq!(output.code, 1);
    assert!(output.err.contains("is there already"), "{}", output.err);
    assert_eq!(std::fs::read_to_string(out).expect("a file"), "precious");
    let names = std::fs::read_dir(home.path()).expect("a home");
    let names = names.map(|it| {
        it.expect("an entry")
            .file_name()
            .into_string()
            .expect("text")
    });
    assert!(
        !names
            .collect::<Vec<_>>()
            .iter()
            .any(|it| it.ends_with(".part"))
    );
}
