//! Permission profiles that deny `:root`, in the real binary.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{MockClient, MockModel};

const SCRIPT: &str = r#"
repeat = true
[[answer]]
match = 'say read'
steps = [
    { call = 'exec_command', arguments = { cmd = 'cat cloth; cat ../outside/diary', login = false } },
    { call = 'read_file', arguments = { path = 'cloth' } },
    { call = 'read_file', arguments = { path = '../outside/diary' } },
]
[[answer]]
steps = [{ text = 'Done.' }]
"#;

/// The profiles, as arguments of the server. The folders of the tests are in `/tmp`, so none lists
/// that.
const PROFILES: [&str; 4] = [
    "default_permissions=\"reader\"",
    "permissions.reader={ filesystem = { \":root\" = \"deny\", \":minimal\" = \"read\", \
     \":workspace_roots\" = { \".\" = \"read\" } } }",
    "permissions.writer={ extends = \"reader\", filesystem = { \":workspace_roots\" = \"write\" } }",
    "permissions.open={ extends = \":read-only\" }",
];

/// A workspace with a file, and a file outside.
struct ReadFixture {
    _top: TempDir,
    work: PathBuf,
    diary: PathBuf,
}

impl ReadFixture {
    fn new() -> Self {
        let top = tempfile::tempdir().expect("a folder");
        let plain = top.path().canonicalize().expect("its real path");
        let (work, outside) = (plain.join("work"), plain.join("outside"));
        for folder in [&work, &outside] {
            fs::create_dir(folder).expect("a folder");
        }
        let diary = outside.join("diary");
        fs::write(work.join("cloth"), "woven of wool\n").expect("a file");
        fs::write(&diary, "dear diary\n").expect("a file");
        Self {
            _top: top,
            work,
            diary,
        }
    }
}

fn client() -> MockClient {
    let mock = MockModel::start(SCRIPT);
    let mut arguments = mock.arguments(&[]);
    let profiles = PROFILES.iter();
    arguments.extend(profiles.flat_map(|it| ["-c".to_owned(), (*it).to_owned()]));
    MockClient::of(mock, &arguments)
}

fn result_of(client: &mut MockClient, method: &str, params: Value) -> Value {
    client.ask(method, params);
    let request_id = client.last_id;
    let answer = client.until(|it| it["id"] == request_id);
    answer.last().expect("an answer").clone()
}

#[test]
fn a_denied_root_cannot_be_read_by_commands_and_tools() {
    let mut client = client();
    for (profile, is_open) in [("reader", false), ("writer", false), ("open", true)] {
        let fixture = ReadFixture::new();
        let config = json!({ "default_permissions": profile });
        let params = json!({ "cwd": fixture.work, "config": config });
        let started = result_of(&mut client, "thread/start", params);
        let thread = started["result"]["thread"]["id"].clone();
        assert!(thread.is_string(), "{profile}: {started}");
        client.answered(json!({ "threadId": thread }), "say read", "decline");
        let outputs = client.outputs_to_model();
        let with = |text: &str| outputs.iter().filter(|it| it.contains(text)).count();
        assert_eq!(with("woven of wool"), 2, "{profile}: {outputs:?}");
        let expected = if is_open { 2 } else { 0 };
        assert_eq!(with("dear diary"), expected, "{profile}: {outputs:?}");
    }
}

/// A command of the client runs in the default profile, which denies `:root`.
#[test]
fn a_denied_root_cannot_be_read_by_a_command_of_the_client() {
    let mut client = client();
    let fixture = ReadFixture::new();
    let mut cat = |path: &Path| {
        let params = json!({ "command": ["cat", path], "cwd": fixture.work });
        let answer = result_of(&mut client, "command/exec", params);
        answer["result"]["stdout"].clone()
    };
    assert_eq!(cat(&fixture.work.join("cloth")), "woven of wool\n");
    assert_eq!(cat(&fixture.diary), "");
    // The workspace would be the whole disk.
    let params = json!({ "command": ["cat", fixture.diary], "cwd": "/" });
    let answer = result_of(&mut client, "command/exec", params);
    assert!(answer["error"].is_object(), "{answer}");
}
