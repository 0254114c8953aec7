//! `list` and `show`, and invalid arguments.

use raddle_store::NodeLock;
use serde_json::Value;

use super::{StoredHome, block_on, filled};
use crate::records::{ThreadScript, begin_turn};

#[test]
fn a_home_without_threads_has_none_and_stays_empty() {
    let home = StoredHome::new();
    assert_eq!(home.good(&["list"]), "");
    assert_eq!(home.good(&["list", "--search", "anything"]), "");
    assert_eq!(home.good(&["verify"]), "");
    let output = home.run(&["show", "0"]);
    assert_eq!(output.code, 1);
    assert!(
        output.err.contains("there are no threads in"),
        "{}",
        output.err
    );
    assert_eq!(std::fs::read_dir(home.path()).expect("a home").count(), 0);
}

#[test]
fn a_list_shows_the_newest_first() {
    let (home, threads) = filled();
    let [one, two, three] = threads.map(|it| it.to_string());
    for (arguments, expected) in [
        (&[][..], vec![&three, &two, &one]),
        (&["--cwd", "/code/one"], vec![&three, &one]),
        (&["--cwd", "/work"], vec![]),
        (&["--archived"], vec![]),
        (&["--limit", "2"], vec![&three, &two]),
    ] {
        assert_eq!(
            home.listed(arguments),
            expected.iter().map(|it| it.as_str()).collect::<Vec<_>>(),
            "{arguments:?}"
        );
    }
    let text = home.good(&["list"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    for (line, expected) in lines.iter().zip([
        format!("{three}  1970-01-01 00:50:00Z      1  /code/one  third"),
        format!("{two}  1970-01-01 00:33:20Z      1  /code/two  only here: xylophone"),
        format!("{one}  1970-01-01 00:00:01Z      2  /code/one  the first"),
    ]) {
        assert_eq!(*line, expected);
    }
}

#[test]
fn pages_of_a_list_follow_one_another() {
    let (home, threads) = filled();
    let mut ids = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut arguments = vec!["list", "--json", "--limit", "1"];
        if let Some(cursor) = &cursor {
            arguments.extend(["--cursor", cursor]);
        }
        let page: Value = serde_json::from_str(&home.good(&arguments)).expect("JSON");
        ids.push(page["data"][0]["id"].as_str().expect("an id").to_owned());
        match page["nextCursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    let mut expected = threads.map(|it| it.to_string());
    expected.reverse();
    assert_eq!(ids, expected);
    let output = home.run(&["list", "--limit", "1"]);
    assert!(
        output.err.contains("there are more: --cursor "),
        "{}",
        output.err
    );
    let output = home.run(&["list", "--cursor", "nonsense"]);
    assert_eq!(output.code, 2);
}

#[test]
fn a_search_finds_message_text() {
    let (home, threads) = filled();
    // No process maintains the index, and none has created it.
    let index = home.threads().join("search.sqlite");
    if index.exists() {
        std::fs::remove_file(index).expect("no index");
    }
    let output = home.run(&["list", "--search", "xylophone"]);
    assert_eq!((output.code, output.out.as_str()), (0, ""));
    assert!(
        output.err.starts_with("3 threads are not yet"),
        "{}",
        output.err
    );
    // Beside a process that maintains it, the search waits for stored records.
    let _alive = NodeLock::take(&home.threads(), "keeper").expect("a lock");
    let _journal = home.journal();
    let output = home.run(&["list", "--search", "xylophone"]);
    assert!(
        output.out.starts_with(&threads[1].to_string()),
        "{}",
        output.out
    );
    assert_eq!(output.err, "");
    assert_eq!(home.run(&["list", "--search", "xy"]).code, 2);
}

#[test]
fn a_thread_is_shown_turn_by_turn() {
    let (home, [one, ..]) = filled();
    let id = one.to_string();
    let text = home.good(&["show", &id]);
    let mut rest = text.as_str();
    for part in [
        "title   the first\n",
        "folder  /code/one\n",
        "turns   2\n",
        "\nturn t1  1970-01-01 00:00:01Z  completed\n",
        "\n  user\n    first question\n",
        "\n  agent\n    so be it\n",
        "\nturn t2  ",
        "\n  user\n    second question\n",
        "[image/png, 3000 bytes, ",
        "    a long answer a long answer",
    ] {
        let (_, after) = rest
            .split_once(part)
            .unwrap_or_else(|| panic!("{part:?} in {text}"));
        rest = after;
    }
    let lines = home.good(&["show", &id, "--json"]);
    let lines: Vec<Value> = lines
        .lines()
        .map(|it| serde_json::from_str(it).expect("JSON"))
        .collect();
    assert_eq!(lines[0]["thread"]["id"], id.as_str());
    let turns: Vec<&Value> = lines
        .iter()
        .filter_map(|it| it.get("turn")?.get("id"))
        .collect();
    assert_eq!(turns, ["t1", "t2"]);
    assert_eq!(
        lines.iter().filter(|it| it.get("item").is_some()).count(),
        6
    );
}

#[test]
fn a_running_turn_is_shown_as_running() {
    let home = StoredHome::new();
    let thread = block_on(async {
        let journal = home.journal();
        let mut script = ThreadScript::new();
        script.start(&journal, "/w").await;
        script.turn(&journal, "t1", "one").await;
        script.append(&journal, begin_turn("t2", "two")).await;
        script.thread.to_string()
    });
    let text = home.good(&["show", &thread]);
    let (_, last) = text.split_once("turn t2  ").expect("a turn");
    assert!(last.contains("  has not ended\n"), "{text}");
    assert!(last.contains("    two\n"), "{text}");
}

#[test]
fn stored_text_is_printed_without_control_characters() {
    let home = StoredHome::new();
    let thread = block_on(async {
        let journal = home.journal();
        let mut script = ThreadScript::new();
        script.start(&journal, "/w\u{1b}[2J").await;
        script
            .turn(&journal, "t1", "\u{1b}]0;title\u{7} \u{202e}txt")
            .await;
        script.thread.to_string()
    });
    for arguments in [&["list"][..], &["show", &thread]] {
        let out = home.good(arguments);
        assert!(!out.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{out:?}");
        assert!(out.contains("\\u{1b}"), "{out:?}");
    }
}

#[test]
fn a_unique_prefix_of_an_id_suffices() {
    let (home, [one, ..]) = filled();
    let id = one.to_string();
    let short = &id[..id.len() - 2];
    assert!(home.good(&["show", short]).contains(&id));
    let bare = id.replace('-', "").to_uppercase();
    assert!(home.good(&["show", &bare]).contains(&id));
    for (prefix, what) in [
        (&id[..6], "more than one thread has an id that begins with"),
        ("ffffffff", "no thread has an id that begins with"),
        ("not-an-id", "no thread has an id that begins with"),
        ("", "no thread has an id that begins with"),
    ] {
        let output = home.run(&["show", prefix]);
        assert_eq!(output.code, 1, "{prefix}");
        assert!(output.err.contains(what), "{}", output.err);
        assert_eq!(output.out, "");
    }
}

#[test]
fn invalid_arguments_exit_with_2() {
    let (home, [one, two, _]) = filled();
    let (one, two) = (one.to_string(), two.to_string());
    for arguments in [
        &[][..],
        &["frobnicate"],
        &["list", "--limit", "0"],
        &["list", "--limit", "1001"],
        &["show"],
        &["export"],
        &["export", "--all"],
        &["export", "--all", &one, "--out", "x"],
        &["export", &one, &two],
        &["export", &one, "--json"],
        &["import"],
        &["verify", "--all", &one],
        &["delete"],
        &["delete", &one],
    ] {
        let output = home.run(arguments);
        assert_eq!(output.code, 2, "{arguments:?}: {}", output.err);
        assert_eq!(output.out, "", "{arguments:?}");
        assert!(!output.err.is_empty(), "{arguments:?}");
    }
    assert_eq!(home.listed(&[]).len(), 3);
}

#[test]
fn every_command_lists_its_options() {
    let home = StoredHome::new();
    for (command, options) in [
        (
            "list",
            &[
                "--archived",
                "--cwd",
                "--search",
                "--limit",
                "--cursor",
                "--json",
            ][..],
        ),
        ("show", &["<ID>", "--json"]),
        ("export", &["[ID]", "--all", "--out", "--partial", "--json"]),
        ("import", &["<FILE>", "--as-new", "--partial", "--json"]),
        ("verify", &["[ID]", "--all", "--json"]),
        ("delete", &["<ID>", "--yes"]),
    ] {
        let help = home.good(&[command, "--help"]);
        for option in options {
            assert!(help.contains(option), "{command} {option}: {help}");
        }
    }
}
