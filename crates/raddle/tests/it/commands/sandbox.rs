//! Commands of clients inside the sandbox.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::thread;

use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{answer, exec};
use crate::support::request;
use crate::support::server::TestServer;

const LISTEN_ARGS: [&str; 3] = ["--listen", "ws://127.0.0.1:0", "--insecure-loopback"];

/// A repository outside `/tmp`, which commands may write, with another one in it.
fn workspace() -> TempDir {
    let outer = repository(TempDir::new_in("/var/tmp").expect("a folder"));
    init(&outer.path().join("package"));
    outer
}

fn repository(folder: TempDir) -> TempDir {
    init(folder.path());
    folder
}

fn init(folder: &Path) {
    let mut git = Command::new("git");
    let made = git.args(["init", "-q"]).arg(folder).status();
    assert!(made.expect("git").success());
}

/// Runs a script under a policy. Returns its exit code and its output.
fn run(server: &TestServer, cwd: &Path, policy: Value, script: &str) -> (i64, String) {
    let mut client = server.client();
    let more = json!({"cwd": cwd, "sandboxPolicy": policy});
    client.send(&exec("run", script, more));
    let response = answer(&mut client);
    let result = &response["result"];
    let code = result["exitCode"]
        .as_i64()
        .unwrap_or_else(|| panic!("{response}"));
    let stdout = result["stdout"].as_str().expect("text");
    (code, stdout.trim().to_owned())
}

#[test]
fn a_command_is_limited_to_its_policy() {
    let server = TestServer::start(&LISTEN_ARGS);
    let (workspace, outside) = (workspace(), TempDir::new_in("/var/tmp").expect("a folder"));
    let outside = outside.path().display();
    let read = || json!({"type": "readOnly"});
    let write = || json!({"type": "workspaceWrite"});
    let only_here =
        json!({"type": "workspaceWrite", "excludeSlashTmp": true, "excludeTmpdirEnvVar": true});
    let more = json!({"type": "workspaceWrite", "writableRoots": [outside.to_string()]});
    let home = server.home().display();
    for (policy, script, works) in [
        // Without a policy the configuration decides, which is empty here.
        (Value::Null, "git status --short".to_owned(), true),
        (Value::Null, "touch file".to_owned(), false),
        (read(), "touch file".to_owned(), false),
        (read(), "touch /tmp/file".to_owned(), false),
        (write(), "touch file && rm file".to_owned(), true),
        (write(), "f=$(mktemp) && rm $f".to_owned(), true),
        (only_here, "touch /tmp/file".to_owned(), false),
        (write(), format!("touch {outside}/file"), false),
        (more, format!("touch {outside}/file"), true),
        (write(), "touch .git/file".to_owned(), false),
        (write(), "mkdir .codex".to_owned(), false),
        (write(), "mv .git elsewhere".to_owned(), false),
        (write(), "touch package/.git/file".to_owned(), false),
        (
            write(),
            "touch package/file && rm package/file".to_owned(),
            true,
        ),
        // Nor can its parent folder be moved.
        (write(), "mv package elsewhere".to_owned(), false),
        (read(), format!("ls -A {home} | grep ."), false),
    ] {
        let (code, output) = run(&server, workspace.path(), policy.clone(), &script);
        assert_eq!(code == 0, works, "{policy} {script}: {code} {output}");
    }
    let pair = "python3 -c 'import socket as s; s.socketpair(s.AF_UNIX, s.SOCK_DGRAM)'";
    let (code, output) = run(&server, workspace.path(), write(), pair);
    assert_ne!(code, 0, "datagrams can be sent anywhere: {output}");
    let below_tmp = repository(TempDir::new().expect("a folder"));
    let (code, output) = run(&server, below_tmp.path(), write(), "touch .git/file");
    assert_ne!(code, 0, "a folder below /tmp is protected too: {output}");
    std::fs::remove_dir_all(workspace.path().join("package")).expect("it is there");
    let entries: Vec<_> = std::fs::read_dir(workspace.path())
        .expect("it is there")
        .collect();
    assert_eq!(entries.len(), 1, "only .git is left: {entries:?}");
    server.stop();
}

#[test]
fn the_network_is_reached_through_the_proxy_or_not_at_all() {
    // A service of this machine that no command may reach unless it is listed.
    let service = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let port = service.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in service.incoming().flatten() {
            let mut stream = stream;
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        }
    });
    let list = format!("sandbox_network.allow=[\"127.0.0.1:{port}\"]");
    let server = TestServer::start(&[&LISTEN_ARGS[..], &["-c", &list]].concat());
    let workspace = workspace();
    let get = |at: &str, host: &str| {
        format!(
            "exec 3<>/dev/tcp/127.0.0.1/{at} && printf 'GET http://{host}/ HTTP/1.1\\r\\n\\r\\n' >&3 && cat <&3"
        )
    };
    let granted = json!({"type": "readOnly", "networkAccess": true});
    let not_granted = json!({"type": "readOnly"});
    let proxy = "3128";
    for (policy, script, expected) in [
        (&granted, get(proxy, &format!("127.0.0.1:{port}")), "hello"),
        (&granted, get(proxy, "example.com"), "HTTP/1.1 403"),
        (&granted, get(proxy, "127.0.0.1:1"), "HTTP/1.1 403"),
        (&granted, get(&port.to_string(), "x"), ""),
        (
            &granted,
            "echo $https_proxy".to_owned(),
            "http://127.0.0.1:3128",
        ),
        (&not_granted, get(proxy, &format!("127.0.0.1:{port}")), ""),
        (&not_granted, get(&port.to_string(), "x"), ""),
        (&not_granted, "echo $https_proxy".to_owned(), ""),
    ] {
        let script = format!("bash -c {}", quoted(&script));
        let (_, output) = run(&server, workspace.path(), policy.clone(), &script);
        let is_as_expected = match expected {
            "" => output.is_empty(),
            expected => output.contains(expected),
        };
        assert!(is_as_expected, "{policy} {script}: {output}");
    }
    server.stop();
}

#[test]
fn an_interrupt_from_a_terminal_spares_the_sandbox() {
    let server = TestServer::start(&LISTEN_ARGS);
    let mut client = server.client();
    let more = json!({"sandboxPolicy": {"type": "readOnly"}, "processId": "p", "tty": true});
    client.send(&exec(
        "run",
        "trap 'exit 7' INT; echo ready; while :; do :; done",
        more,
    ));
    // The first output of a command may come in pieces.
    while client.receive()["method"] != "command/exec/outputDelta" {}
    let typed = json!({"processId": "p", "deltaBase64": "Aw=="});
    client.send(&request("type", "command/exec/write", typed));
    loop {
        let answered = answer(&mut client);
        if answered["id"] == "run" {
            assert_eq!(answered["result"]["exitCode"], 7, "{answered}");
            break;
        }
    }
    server.stop();
}

#[test]
fn a_terminated_command_may_clean_up() {
    let server = TestServer::start(&LISTEN_ARGS);
    let mut client = server.client();
    let script = "trap 'echo tidy; exit 3' TERM; echo ready >&2; while :; do :; done";
    let more = json!({
        "sandboxPolicy": {"type": "readOnly"}, "processId": "p", "streamStdoutStderr": true,
    });
    client.send(&exec("run", script, more));
    while client.receive()["params"]["stream"] != "stderr" {}
    let ended = json!({"processId": "p"});
    client.send(&request("end", "command/exec/terminate", ended));
    let mut output = Vec::new();
    let code = loop {
        let message = client.receive();
        if message["params"]["stream"] == "stdout" {
            output.push(message["params"]["deltaBase64"].clone());
        }
        if message["id"] == "run" {
            break message["result"]["exitCode"].clone();
        }
    };
    assert_eq!((code, output), (json!(3), vec![json!("dGlkeQo=")]));
    server.stop();
}

/// Without bubblewrap there is only the second tier, which protects no names.
#[test]
fn the_second_tier_writes_folders_only_where_that_was_accepted() {
    let policy = json!({
        "type": "workspaceWrite", "excludeSlashTmp": true, "excludeTmpdirEnvVar": true,
    });
    for (accepted, works) in [(None, false), (Some("A"), false), (Some("B"), true)] {
        let setting = accepted.map(|it| format!("sandbox_accept_tier={it:?}"));
        let mut arguments = LISTEN_ARGS.to_vec();
        arguments.extend(["-c", "sandbox_bwrap_path=/nowhere/bwrap"]);
        arguments.extend(setting.iter().flat_map(|it| ["-c", it]));
        let server = TestServer::start_under(":", &arguments);
        let workspace = workspace();
        let outside = TempDir::new_in("/var/tmp").expect("a folder");
        let script = format!(": > file && ! echo x > {}/file", outside.path().display());
        let more = json!({
            "command": ["/bin/sh", "-c", script], "cwd": workspace.path(), "sandboxPolicy": policy,
        });
        let mut client = server.client();
        client.send(&exec("run", "", more));
        let response = answer(&mut client);
        assert_eq!(
            response["result"]["exitCode"] == 0,
            works,
            "{accepted:?}: {response}"
        );
        assert_eq!(workspace.path().join("file").exists(), works);
        let why = response["error"]["message"].as_str().unwrap_or_default();
        assert_eq!(why.contains("protecting names"), !works, "{response}");
        server.stop();
    }
}

/// A bubblewrap that never exits, so that the strength of the sandbox is not known yet.
#[test]
fn a_command_can_be_ended_before_its_sandbox_is_ready() {
    let folder = TempDir::new().expect("a folder");
    let pipe = folder.path().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).expect("a pipe");
    let bubblewrap = folder.path().join("bwrap");
    let script = format!("#!/bin/sh\nread nothing < {}\n", pipe.display());
    fs::write(&bubblewrap, script).expect("it is written");
    fs::set_permissions(&bubblewrap, Permissions::from_mode(0o755)).expect("it is marked");
    let setting = format!("sandbox_bwrap_path={}", bubblewrap.display());
    let server = TestServer::start_under(":", &[&LISTEN_ARGS[..], &["-c", &setting]].concat());
    let mut client = server.client();
    let policy = json!({"type": "readOnly"});
    let limited = json!({
        "cwd": "/", "command": ["true"], "timeoutMs": 1, "sandboxPolicy": policy,
    });
    client.send(&request("limited", "command/exec", limited));
    let answered = answer(&mut client);
    let nothing = |code: i32| json!({"exitCode": code, "stdout": "", "stderr": ""});
    assert_eq!(answered["result"], nothing(124), "{answered}");

    let more = json!({"processId": "p", "sandboxPolicy": policy});
    client.send(&exec("run", "echo ran", more));
    let ended = json!({"processId": "p"});
    client.send(&request("end", "command/exec/terminate", ended));
    let mut answers = [answer(&mut client), answer(&mut client)];
    answers.sort_by_key(|it| it["id"].to_string());
    let [end, run] = answers;
    assert_eq!(end["result"], json!({}), "{end}");
    assert_eq!(run["result"], nothing(143), "{run}");
    server.stop();
}

fn quoted(script: &str) -> String {
    format!("'{}'", script.replace('\'', "'\\''"))
}
