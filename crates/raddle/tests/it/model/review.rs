//! Reviews of changes in a git repository: the hunks in which their findings lie.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{MockClient, MockModel, request_id_value};

/// The lines of each finding, in the order of the expected ids.
const PLACES: [&str; 6] = [
    "a.rs:2-3",
    "a.rs:4-27",
    "b.rs:5",
    "sub/new.rs:1",
    "c.rs:1",
    "./a.rs:28",
];

fn git(folder: &Path, words: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=n", "-c", "user.email=e"]);
    git.args(words).current_dir(folder);
    let output = git.output().expect("git runs");
    assert!(output.status.success(), "git {words:?}: {output:?}");
    String::from_utf8(output.stdout)
        .expect("text")
        .trim()
        .to_owned()
}

/// A client of a thread in this folder, whose model finds a problem in each place.
fn client(folder: &Path) -> MockClient {
    let findings = PLACES.map(|it| format!("- [P1] A problem — {it}\\n"));
    let script = format!(
        "repeat = true\n[[answer]]\nsteps = [{{ text = \"{}\" }}]",
        findings.concat()
    );
    let mock = MockModel::start(&script);
    let mut arguments = mock.arguments(&[]);
    for setting in ["sandbox_mode=workspace-write", "approval_policy=never"] {
        arguments.extend(["-c".to_owned(), setting.to_owned()]);
    }
    let mut client = MockClient::of(mock, &arguments);
    let thread = result_of(&mut client, "thread/start", json!({ "cwd": folder }));
    let thread = thread["thread"]["id"].as_str().expect("a thread");
    client.thread = thread.to_owned();
    client
}

fn result_of(client: &mut MockClient, method: &str, params: Value) -> Value {
    client.ask(method, params);
    let id = request_id_value(client.last_id);
    let answer = client.until(|it| it["id"] == id).pop().expect("an answer");
    assert!(answer["result"].is_object(), "{method}: {answer}");
    answer["result"].clone()
}

/// Returns the ids of the hunks of each finding; null for a finding without any.
fn reviewed(client: &mut MockClient, target: &Value) -> Vec<Value> {
    let params = json!({ "threadId": client.thread, "target": target });
    client.ask("review/start", params);
    let messages = client.until(|it| it["method"] == "turn/completed");
    let items = messages.iter().map(|it| &it["params"]["item"]);
    let mut ends = items.filter(|it| it["type"] == "exitedReviewMode");
    let end = ends.next_back().expect("an end of the review");
    let findings = end["findings"].as_array().expect("findings").iter();
    findings.map(|it| it["hunkIds"].clone()).collect()
}

#[test]
fn findings_have_the_hunks_of_the_diff_under_review() {
    let folder = TempDir::new().expect("a folder");
    let work = folder.path().canonicalize().expect("its real path");
    let lines: String = (1..=40).map(|it| format!("{it}\n")).collect();
    git(&work, &["init", "-q", "-b", "main"]);
    for name in ["a.rs", "b.rs", "c.rs"] {
        fs::write(work.join(name), &lines).expect("a file");
    }
    git(&work, &["add", "."]);
    git(&work, &["commit", "-q", "-m", "one"]);
    git(&work, &["checkout", "-q", "-b", "topic"]);
    fs::write(work.join("b.rs"), lines.replace("\n5\n", "\nfive\n")).expect("a file");
    fs::write(work.join("a.rs"), lines.replace("29\n30\n", "30\n")).expect("a file");
    git(&work, &["commit", "-q", "-a", "-m", "two"]);
    let commit = git(&work, &["rev-parse", "HEAD"]);
    // A configuration that changes what git prints, and one that runs a program.
    for (name, value) in [
        ("diff.noprefix", "true"),
        ("diff.external", "false"),
        ("color.ui", "always"),
    ] {
        git(&work, &["config", name, value]);
    }

    let mut client = client(&work);
    let edit = "sed -i -e s/^3$/three/ -e s/^24$/twenty/ a.rs; mkdir sub; echo x > sub/new.rs";
    let text = format!(r#"MOCK call name=exec_command arguments={{"cmd": "{edit}"}}"#);
    let (_, turn) = client.say(&text);
    let ids = json!({ "threadId": client.thread, "turnId": turn["id"] });
    let diff = result_of(&mut client, "turn/diff/read", ids);
    let hunk = |file: usize, index: usize| {
        let id = &diff["diff"]["files"][file]["hunks"][index]["id"];
        assert!(id.is_string(), "{diff}");
        id.clone()
    };
    let (third, last, new) = (hunk(0, 0), hunk(0, 1), hunk(1, 0));

    let none = Value::Null;
    let uncommitted = reviewed(&mut client, &json!({ "type": "uncommittedChanges" }));
    let expected = [
        json!([third]),
        json!([last]),
        none.clone(),
        json!([new]),
        none.clone(),
        none.clone(),
    ];
    assert_eq!(uncommitted, expected, "{diff}");

    let since = reviewed(
        &mut client,
        &json!({ "type": "baseBranch", "branch": "main" }),
    );
    // The commit removed a line near the other one, so both changes are one hunk.
    assert_eq!(
        (&since[0], &since[3], &since[4]),
        (&json!([third]), &json!([new]), &none)
    );
    assert!(
        since[1] != json!([last]) && since[1].is_array(),
        "{since:?}"
    );
    assert_eq!(since[1], since[5], "{since:?}");

    // The lines of a file that changed since are others.
    let of_commit = reviewed(&mut client, &json!({ "type": "commit", "sha": commit }));
    let expected = [&none, &none, &since[2], &none, &none, &none];
    assert_eq!(of_commit.iter().collect::<Vec<_>>(), expected);
    assert!(since[2].is_array(), "{since:?}");

    let custom = json!({ "type": "custom", "instructions": "Look at a.rs." });
    for target in [custom, json!({ "type": "commit", "sha": "--output=x" })] {
        assert_eq!(
            reviewed(&mut client, &target),
            vec![none.clone(); PLACES.len()],
            "{target}"
        );
    }
    assert!(!work.join("x").exists());
}
