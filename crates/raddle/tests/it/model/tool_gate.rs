//! The agent's hands in the real program: commands in a real fence, patches, questions.

use serde_json::{Value, json};

use super::MockClient;

/// Plays a turn in which the model makes one call, and answers its question, if there is one. Gives what was
/// heard, and what the model was told of the call.
fn play(call: &str, start: Value, decision: &str) -> (Vec<Value>, String, MockClient) {
    let mut client = MockClient::start(&script(call), &[]);
    let (heard, told) = act(&mut client, start, decision);
    (heard, told, client)
}

fn script(call: &str) -> String {
    format!(
        "[[answer]]\nmatch = 'do it'\nsteps = [{call}]\n[[answer]]\nsteps = [{{ text = 'Done.' }}]"
    )
}

/// The turn in which that call is made.
fn act(client: &mut MockClient, start: Value, decision: &str) -> (Vec<Value>, String) {
    let mut params =
        json!({"threadId": client.thread, "input": [{"type": "text", "text": "do it"}]});
    for (name, value) in start.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    client.ask("turn/start", params);
    let mut heard = client.until(|it| {
        it["method"] == "turn/completed"
            || it["method"]
                .as_str()
                .is_some_and(|it| it.ends_with("/requestApproval"))
    });
    let last = heard.last().cloned().unwrap_or_default();
    if last["method"] != "turn/completed" {
        let answer = json!({"id": last["id"], "result": {"decision": decision}});
        client.pipes.send(answer.to_string().as_bytes());
        heard.extend(client.until(|it| it["method"] == "turn/completed"));
    }
    let asked = client.mock.asked();
    let told = asked
        .last()
        .and_then(|it| it["input"].as_array()?.last().cloned());
    let told = told.unwrap_or_default()["output"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    (heard, told)
}

fn completed(heard: &[Value], kind: &str) -> Value {
    let item = heard
        .iter()
        .find(|it| it["method"] == "item/completed" && it["params"]["item"]["type"] == kind);
    item.map(|it| it["params"]["item"].clone())
        .unwrap_or_default()
}

fn workspace() -> Value {
    json!({"sandboxPolicy": {"type": "workspaceWrite", "excludeSlashTmp": true, "excludeTmpdirEnvVar": true}})
}

#[test]
fn a_command_runs_in_the_fence_and_its_deltas_are_its_output() {
    let call = "{ call = 'exec_command', arguments = { cmd = 'echo one; touch here; touch /beyond-raddle; echo two', login = false } }";
    let (heard, told, client) = play(call, workspace(), "accept");
    let item = completed(&heard, "commandExecution");
    let deltas = heard
        .iter()
        .filter(|it| it["method"] == "item/commandExecution/outputDelta");
    let deltas: String = deltas
        .filter_map(|it| it["params"]["delta"].as_str())
        .collect();
    assert_eq!(item["aggregatedOutput"], deltas, "{item}");
    assert!(
        deltas.contains("one\n") && deltas.contains("two\n"),
        "{deltas}"
    );
    assert!(deltas.contains("/beyond-raddle"), "{deltas}");
    assert_eq!(
        (&item["exitCode"], &item["status"]),
        (&json!(0), &json!("completed"))
    );
    assert!(client.work().join("here").exists());
    assert!(!std::path::Path::new("/beyond-raddle").exists());
    assert!(told.contains("Process exited with code 0"), "{told}");
}

#[test]
fn without_an_environment_the_agent_has_no_tools() {
    let call = "{ call = 'exec_command', arguments = { cmd = 'echo one > here', login = false } }";
    let mut start = workspace();
    start["environments"] = json!([]);
    let mut client = MockClient::experimental(&script(call));
    let (heard, told) = act(&mut client, start, "accept");
    assert_eq!(told, "There is no tool named exec_command.", "{heard:?}");
    assert!(!client.work().join("here").exists());
    let asked = client.mock.asked();
    let tools = asked[0]["tools"].as_array();
    assert!(tools.is_none_or(Vec::is_empty), "{tools:?}");
}

/// A user whose profile exports a key and a folder of programs: the folder counts, the key does not, whatever the model
/// asks for. With the operator's leave a login shell reads the profile, in the sandbox only.
#[test]
fn a_command_gets_nothing_of_the_users_profile_but_its_path() {
    let user = tempfile::TempDir::new_in("/var/tmp").expect("a folder");
    let profile = "export LOGIN_KEY=sekret\nexport PATH=\"$PATH:$HOME/programs\"\necho noise\n";
    std::fs::write(user.path().join(".profile"), profile).expect("a profile");
    std::fs::create_dir(user.path().join("programs")).expect("a folder");
    let variables = [
        ("HOME", user.path().to_str().expect("text")),
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("SHELL", "/bin/bash"),
    ];
    let cmd = "echo \"key ${LOGIN_KEY:-none}\"; echo \"path $PATH\"";
    let line = format!("{{ call = 'exec_command', arguments = {{ cmd = '{cmd}' }} }}");
    let login =
        format!("{{ call = 'exec_command', arguments = {{ cmd = '{cmd}', login = true }} }}");
    let beyond = format!(
        "{{ call = 'exec_command', arguments = {{ cmd = '{cmd}', login = true, sandbox_permissions = 'require_escalated' }} }}"
    );
    let words =
        format!("{{ call = 'shell', arguments = {{ command = ['bash', '-lc', '{cmd}'] }} }}");
    for (call, allowed, is_login) in [
        (&line, false, false),
        (&login, false, false),
        (&words, false, false),
        (&beyond, false, false),
        (&line, true, false),
        (&login, true, true),
        (&words, true, true),
        (&beyond, true, false),
    ] {
        let mock = super::MockModel::start(&script(call));
        let mut arguments = mock.arguments(&[]);
        if allowed {
            arguments.extend(["-c", "allow_login_shell=true"].map(str::to_owned));
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let server = crate::support::server::TestServer::start_with(&arguments, &variables);
        let mut client = MockClient::at(mock, server);
        let (heard, told) = act(&mut client, workspace(), "accept");
        let at = format!("{call}, allowed: {allowed}: {told}");
        let key = if is_login { "key sekret" } else { "key none" };
        assert!(told.contains(key), "{at}");
        assert!(told.contains("/programs"), "{at}");
        // What is shown is what is run.
        let shown = completed(&heard, "commandExecution")["command"].to_string();
        assert_eq!(shown.contains("-lc"), is_login, "{at}: {shown}");
    }
}

/// A yes to a program by its name is none to what the sandbox could have written under that name: an activated
/// environment has a folder of the workspace first in `PATH`.
#[test]
fn what_goes_beyond_is_not_found_in_the_workspace_by_its_name() {
    for (more, expected) in [
        ("", "own"),
        (
            ", sandbox_permissions = 'require_escalated'",
            "the system's",
        ),
    ] {
        let call = format!(
            "{{ call = 'exec_command', arguments = {{ cmd = 'whose-program || echo the systems', login = false{more} }} }}"
        );
        let mock = super::MockModel::start(&script(&call));
        let arguments = mock.arguments(&["name=mock"]);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let folder = tempfile::TempDir::new().expect("a folder");
        let link = folder.path().join("work");
        let path = format!("{}/bin:bin:.:/usr/bin:/bin", link.display());
        let server = crate::support::server::TestServer::start_with(&arguments, &[("PATH", &path)]);
        let mut client = {
            let work = server.home().join("work");
            std::os::unix::fs::symlink(&work, &link).expect("a link");
            MockClient::at(mock, server)
        };
        let program = client.work().join("bin/whose-program");
        std::fs::create_dir(client.work().join("bin")).expect("a folder");
        std::fs::write(&program, "#!/bin/sh\necho own\n").expect("a program");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).expect("it is marked");
        let (_, told) = act(&mut client, workspace(), "accept");
        assert!(told.contains(&expected.replace('\'', "")), "{more}: {told}");
    }
}

/// The order is the one that was recorded from Codex.
#[test]
fn what_goes_beyond_is_asked_about_in_the_order_that_clients_know() {
    let call = "{ call = 'exec_command', arguments = { cmd = 'echo beyond', login = false, sandbox_permissions = 'require_escalated', justification = 'May I?' } }";
    for (decision, status, after) in [
        (
            "accept",
            "completed",
            &["serverRequest/resolved", "thread/status/changed"][..],
        ),
        (
            "decline",
            "declined",
            &[
                "serverRequest/resolved",
                "thread/status/changed",
                "item/completed",
            ][..],
        ),
    ] {
        let (heard, _, _client) = play(call, workspace(), decision);
        let methods: Vec<&str> = heard
            .iter()
            .filter_map(|it| it["method"].as_str())
            .collect();
        let methods: Vec<&str> = methods
            .into_iter()
            .filter(|it| *it != "thread/tokenUsage/updated")
            .collect();
        let at = methods
            .iter()
            .position(|it| it.ends_with("/requestApproval"))
            .expect("a question");
        assert_eq!(
            methods[at - 2..at],
            ["thread/status/changed", "item/started"]
        );
        assert_eq!(methods[at + 1..at + 1 + after.len()], *after);
        let question = heard
            .iter()
            .find(|it| it["method"] == methods[at])
            .expect("a question");
        assert_eq!(
            question["params"]["reason"],
            "It goes beyond the sandbox. The agent says: May I?"
        );
        assert_eq!(completed(&heard, "commandExecution")["status"], status);
    }
}

/// What runs is what was shown: all of it, or nothing.
#[test]
fn a_long_command_is_asked_about_whole_or_not_at_all() {
    for (bytes, is_asked) in [(100_000, true), (300_000, false)] {
        let line = format!(": {}; echo the end", "a".repeat(bytes));
        let call = format!(
            "{{ call = 'exec_command', arguments = {{ cmd = '{line}', login = false, sandbox_permissions = 'require_escalated' }} }}"
        );
        let (heard, told, _client) = play(&call, workspace(), "accept");
        let asked = |it: &&Value| it["method"] == "item/commandExecution/requestApproval";
        let question = heard.iter().find(asked);
        assert_eq!(question.is_some(), is_asked, "{bytes} bytes");
        match question {
            Some(it) => {
                let shown = it["params"]["command"].as_str().unwrap_or_default();
                assert!(shown.contains(&line), "{} bytes of it", shown.len());
                assert!(told.ends_with("the end\n"), "{told}");
            }
            None => assert!(told.contains("too long to be shown whole"), "{told}"),
        }
    }
}

#[test]
fn a_patch_changes_files_and_the_turn_tells_its_diff() {
    let patch = "*** Begin Patch\\n*** Add File: note.txt\\n+hello\\n*** End Patch\\n";
    let call = format!("{{ call = 'apply_patch', arguments = {{ input = \"{patch}\" }} }}");
    let (heard, told, client) = play(&call, workspace(), "accept");
    let item = completed(&heard, "fileChange");
    assert_eq!(item["status"], "completed", "{item} {told}");
    let written = std::fs::read_to_string(client.work().join("note.txt"));
    assert_eq!(written.expect("a file"), "hello\n");
    let diff = heard
        .iter()
        .find(|it| it["method"] == "turn/diff/updated")
        .expect("a diff");
    let diff = diff["params"]["diff"].as_str().unwrap_or_default();
    assert!(diff.contains("+hello"), "{diff}");
}

#[test]
fn in_a_read_only_sandbox_a_patch_is_asked_about_and_a_no_leaves_no_file() {
    let patch = "*** Begin Patch\\n*** Add File: note.txt\\n+hello\\n*** End Patch\\n";
    let call = format!("{{ call = 'apply_patch', arguments = {{ input = \"{patch}\" }} }}");
    // Not the server's own home, which no tool sees.
    let folder = tempfile::tempdir().expect("a folder");
    let read_only = json!({"sandboxPolicy": {"type": "readOnly"}, "cwd": folder.path()});
    let (heard, told, _client) = play(&call, read_only, "decline");
    assert!(
        heard
            .iter()
            .any(|it| it["method"] == "item/fileChange/requestApproval")
    );
    assert_eq!(completed(&heard, "fileChange")["status"], "declined");
    assert!(!folder.path().join("note.txt").exists());
    assert!(told.contains("declined"), "{told}");
}

#[test]
fn what_a_turn_leaves_running_ends_with_it() {
    let call = "{ call = 'exec_command', arguments = { cmd = 'echo begun; sleep 600', login = false, yield_time_ms = 250 } }";
    let (heard, told, mut client) = play(call, workspace(), "accept");
    let item = completed(&heard, "commandExecution");
    assert_eq!(
        (&item["exitCode"], &item["processId"]),
        (&Value::Null, &json!("1"))
    );
    assert!(told.contains("Process running with session ID 1"), "{told}");
    let warned = client.until(|it| it["method"] == "warning");
    let warning = warned
        .last()
        .and_then(|it| it["params"]["message"].as_str());
    assert!(
        warning.is_some_and(|it| it.contains("sleep 600")),
        "{warning:?}"
    );
}

#[test]
fn a_command_of_the_users_runs_outside_the_sandbox() {
    let mut client = MockClient::start("[[answer]]\nsteps = [{ text = 'Done.' }]", &[]);
    let params = json!({"threadId": client.thread, "command": "echo mine"});
    client.ask("thread/shellCommand", params);
    let heard = client.until(|it| it["method"] == "turn/completed");
    let item = completed(&heard, "commandExecution");
    assert_eq!(
        (&item["source"], &item["exitCode"]),
        (&json!("userShell"), &json!(0))
    );
    let output = item["aggregatedOutput"].as_str().unwrap_or_default();
    assert!(output.ends_with("mine\n"), "{item}");
}

/// What the client grants widens the fence of the commands to come, and of nothing else; the turn's rights end with it.
#[test]
fn rights_that_are_granted_widen_the_fence() {
    let [asked, other] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let shown = |folder: &tempfile::TempDir| folder.path().display().to_string();
    let touch = format!(
        "touch {0}/$N {1}/$N here; echo tried $N",
        shown(&asked),
        shown(&other)
    );
    let exec = |n: &str| {
        let line = touch.replace("$N", n);
        format!("{{ call = 'exec_command', arguments = {{ cmd = '{line}', login = false }} }}")
    };
    for (scope, gives, wanted) in [
        ("turn", true, [true, false]),
        ("session", true, [true, true]),
        ("turn", false, [false, false]),
    ] {
        let (asked, other) = (asked.path(), other.path());
        let script = format!(
            "[[answer]]\nmatch = 'do it'\nsteps = [{{ call = 'request_permissions', arguments = {{ reason = 'to build', permissions = {{ file_system = {{ write = ['{0}', '{1}'] }}, network = {{ enabled = true }} }} }} }}]
             [[answer]]\nsteps = [{2}]\n[[answer]]\nsteps = [{{ text = 'Done.' }}]
             [[answer]]\nsteps = [{3}]\n[[answer]]\nsteps = [{{ text = 'Done.' }}]",
            asked.display(),
            other.display(),
            exec("one"),
            exec("two"),
        );
        let mut client = MockClient::start(&script, &[]);
        let folder = tempfile::tempdir().expect("a folder");
        let read_only = json!({"type": "readOnly"});
        let say = |client: &mut MockClient, text: &str| {
            let input = json!([{"type": "text", "text": text}]);
            let params = json!({"threadId": client.thread, "input": input, "cwd": folder.path(), "sandboxPolicy": read_only});
            client.ask("turn/start", params);
        };
        say(&mut client, "do it");
        let heard = client.until(|it| it["method"] == "item/permissions/requestApproval");
        let question = heard.last().cloned().unwrap_or_default();
        let params = &question["params"];
        let paths = json!([asked, other].map(|it| it.canonicalize().expect("a folder")));
        assert_eq!(
            params["permissions"]["fileSystem"]["write"], paths,
            "{params}"
        );
        assert_eq!(params["permissions"]["network"]["enabled"], true);
        assert_eq!(params["reason"], "to build");
        let given = match gives {
            true => json!({"fileSystem": {"write": [paths[0], "/"]}}),
            false => json!({}),
        };
        let result = json!({"permissions": given, "scope": scope});
        let answer = json!({"id": question["id"], "result": result});
        client.pipes.send(answer.to_string().as_bytes());
        client.until(|it| it["method"] == "turn/completed");
        say(&mut client, "again");
        client.until(|it| it["method"] == "turn/completed");
        let wrote = ["one", "two"].map(|it| asked.join(it).exists());
        assert_eq!(wrote, wanted, "{scope} {gives}");
        for n in ["one", "two"] {
            assert!(!other.join(n).exists(), "what was not granted");
            let _ = std::fs::remove_file(asked.join(n));
        }
        assert!(
            !folder.path().join("here").exists(),
            "the workspace is read-only"
        );
    }
}
/// Whoever says how far the sandbox of a thread goes, the fence goes as far.
#[test]
fn the_configuration_says_what_a_thread_may_write() {
    let top = tempfile::tempdir().expect("a folder");
    let (work, beside) = (top.path().join("work"), top.path().join("beside"));
    std::fs::create_dir(&work).expect("a folder");
    std::fs::create_dir(&beside).expect("a folder");
    let file = beside.join("here");
    let call = format!(
        "{{ call = 'exec_command', arguments = {{ cmd = 'touch {}', login = false }} }}",
        file.display()
    );
    let narrow =
        "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n";
    let wide = format!("{narrow}writable_roots = [{beside:?}]\n");
    let dotted = json!({"sandbox_workspace_write.writable_roots": [beside]});
    let nested = json!({"sandbox_workspace_write": {"writable_roots": [beside]}});
    let mut client = MockClient::start(&script(&call), &[]);
    for (configured, said, may) in [
        (narrow, Value::Null, false),
        (wide.as_str(), Value::Null, true),
        (narrow, dotted, true),
        (narrow, nested, true),
    ] {
        std::fs::write(client.server.home().join("config.toml"), configured).expect("a file");
        let start = json!({"cwd": work, "sandbox": "workspace-write", "config": said});
        client.ask("thread/start", start);
        let started = client.until(|it| it["result"]["thread"]["id"].is_string());
        let started = started.last().cloned().unwrap_or_default();
        let id = started["result"]["thread"]["id"].as_str();
        client.thread = id.expect("a thread").to_owned();
        let (_, told) = act(&mut client, Value::Null, "accept");
        assert_eq!(file.exists(), may, "{configured} {said}: {told}");
        let _ = std::fs::remove_file(&file);
    }
}

/// Where it would find an empty folder it is not run, and the model knows why.
#[test]
fn a_command_is_not_run_where_it_sees_nothing() {
    let call = "{ call = 'exec_command', arguments = { cmd = 'ls -a', login = false } }";
    let (heard, told, _client) = play(
        call,
        json!({"sandboxPolicy": {"type": "readOnly"}}),
        "accept",
    );
    assert_eq!(completed(&heard, "commandExecution")["status"], "failed");
    assert!(told.contains("belongs to the server itself"), "{told}");
}
