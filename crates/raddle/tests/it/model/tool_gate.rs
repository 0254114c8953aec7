//! The tool gate in the real binary: commands in a real sandbox, patches, approvals.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::MockClient;

/// Runs a turn in which the model makes one call, and answers its approval request, if any. Returns
/// all messages, and the output of the call that the model received.
fn play(call: &str, start: Value, decision: &str) -> (Vec<Value>, String, MockClient) {
    let mut client = MockClient::start(&script(call), &[]);
    let (messages, tool_output) = act(&mut client, start, decision);
    (messages, tool_output, client)
}

fn script(call: &str) -> String {
    format!(
        "[[answer]]\nmatch = 'do it'\nsteps = [{call}]\n[[answer]]\nsteps = [{{ text = 'Done.' }}]"
    )
}

/// Runs the turn with that call.
fn act(client: &mut MockClient, start: Value, decision: &str) -> (Vec<Value>, String) {
    let mut params =
        json!({"threadId": client.thread, "input": [{"type": "text", "text": "do it"}]});
    for (name, value) in start.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    client.ask("turn/start", params);
    let mut messages = client.until(|it| {
        it["method"] == "turn/completed"
            || it["method"]
                .as_str()
                .is_some_and(|it| it.ends_with("/requestApproval"))
    });
    let last = messages.last().cloned().unwrap_or_default();
    if last["method"] != "turn/completed" {
        let answer = json!({"id": last["id"], "result": {"decision": decision}});
        client.pipes.send(answer.to_string().as_bytes());
        messages.extend(client.until(|it| it["method"] == "turn/completed"));
    }
    let requests = client.mock.request_bodies();
    let last_item = requests
        .last()
        .and_then(|it| it["input"].as_array()?.last().cloned());
    let tool_output = last_item.unwrap_or_default()["output"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    (messages, tool_output)
}

fn completed(messages: &[Value], kind: &str) -> Value {
    let item = messages
        .iter()
        .find(|it| it["method"] == "item/completed" && it["params"]["item"]["type"] == kind);
    item.map(|it| it["params"]["item"].clone())
        .unwrap_or_default()
}

fn workspace() -> Value {
    json!({"sandboxPolicy": {"type": "workspaceWrite", "excludeSlashTmp": true, "excludeTmpdirEnvVar": true}})
}

#[test]
fn a_command_runs_in_the_sandbox_and_streams_its_output() {
    let call = "{ call = 'exec_command', arguments = { cmd = 'echo one; touch here; touch /beyond-raddle; echo two', login = false } }";
    let (messages, tool_output, client) = play(call, workspace(), "accept");
    let item = completed(&messages, "commandExecution");
    let deltas = messages
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
    assert!(
        tool_output.contains("Process exited with code 0"),
        "{tool_output}"
    );
}

#[test]
fn without_an_environment_the_agent_has_no_tools() {
    let call = "{ call = 'exec_command', arguments = { cmd = 'echo one > here', login = false } }";
    let mut start = workspace();
    start["environments"] = json!([]);
    let mut client = MockClient::experimental(&script(call));
    let (messages, tool_output) = act(&mut client, start, "accept");
    assert_eq!(
        tool_output, "There is no tool named exec_command.",
        "{messages:?}"
    );
    assert!(!client.work().join("here").exists());
    let requests = client.mock.request_bodies();
    let tools = requests[0]["tools"].as_array();
    assert!(tools.is_none_or(Vec::is_empty), "{tools:?}");
}

/// A user's profile exports a key and a folder of programs: the folder is used, the key is not,
/// whatever the model requests. If the operator allows it, a login shell reads the profile, in the
/// sandbox only.
#[test]
fn a_command_gets_only_the_path_of_the_users_profile() {
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
        let (messages, tool_output) = act(&mut client, workspace(), "accept");
        let at = format!("{call}, allowed: {allowed}: {tool_output}");
        let key = if is_login { "key sekret" } else { "key none" };
        assert!(tool_output.contains(key), "{at}");
        assert!(tool_output.contains("/programs"), "{at}");
        // The displayed command is the one that runs.
        let shown = completed(&messages, "commandExecution")["command"].to_string();
        assert_eq!(shown.contains("-lc"), is_login, "{at}: {shown}");
    }
}

/// The configuration and the request set variables. Outside the sandbox only labels are set.
#[test]
fn a_thread_sets_variables_of_its_commands() {
    let cmd = "echo \"[${HAPI_SESSION_ID:-none} ${PLAIN:-none} ${AI_AGENT:-none}]\"";
    for (more, expected) in [
        ("", "[s1 yes editor]"),
        (
            ", sandbox_permissions = 'require_escalated'",
            "[s1 none editor]",
        ),
    ] {
        let call = format!(
            "{{ call = 'exec_command', arguments = {{ cmd = '{cmd}', login = false{more} }} }}"
        );
        let mock = super::MockModel::start(&script(&call));
        let mut arguments = mock.arguments(&[]);
        let setting = ["-c", "shell_environment_policy.set.AI_AGENT=editor"];
        arguments.extend(setting.map(str::to_owned));
        let mut client = MockClient::of(mock, &arguments);
        let config = json!({
            "shell_environment_policy.set.HAPI_SESSION_ID": "s1",
            "shell_environment_policy.set.PLAIN": "yes",
        });
        let work = client.work();
        client.ask("thread/start", json!({"cwd": work, "config": config}));
        let id = json!(client.last_id);
        let started = client.until(|it| it["id"] == id && it["method"].is_null());
        let started = started.last().cloned().unwrap_or_default();
        let thread = started["result"]["thread"]["id"].as_str();
        client.thread = thread.expect("a thread").to_owned();
        let (_, tool_output) = act(&mut client, workspace(), "accept");
        assert!(tool_output.contains(expected), "{more}: {tool_output}");
    }
}

/// The approval of a program by name does not cover a program that the sandbox could have written
/// under that name: an activated environment has a folder of the workspace first in `PATH`.
#[test]
fn an_escalated_program_is_not_found_in_the_workspace() {
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
        let (_, tool_output) = act(&mut client, workspace(), "accept");
        assert!(
            tool_output.contains(&expected.replace('\'', "")),
            "{more}: {tool_output}"
        );
    }
}

/// The order was recorded from Codex.
#[test]
fn an_escalation_sends_its_messages_in_codex_order() {
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
        let (messages, _, _client) = play(call, workspace(), decision);
        let methods: Vec<&str> = messages
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
        let question = messages
            .iter()
            .find(|it| it["method"] == methods[at])
            .expect("a question");
        assert_eq!(
            question["params"]["reason"],
            "It goes beyond the sandbox. The agent says: May I?"
        );
        assert_eq!(completed(&messages, "commandExecution")["status"], status);
    }
}

/// The displayed command is the one that runs: all of it, or nothing.
#[test]
fn a_long_command_is_shown_in_full_or_rejected() {
    for (bytes, is_asked) in [(100_000, true), (300_000, false)] {
        let line = format!(": {}; echo the end", "a".repeat(bytes));
        let call = format!(
            "{{ call = 'exec_command', arguments = {{ cmd = '{line}', login = false, sandbox_permissions = 'require_escalated' }} }}"
        );
        let (messages, tool_output, _client) = play(&call, workspace(), "accept");
        let is_question = |it: &&Value| it["method"] == "item/commandExecution/requestApproval";
        let question = messages.iter().find(is_question);
        assert_eq!(question.is_some(), is_asked, "{bytes} bytes");
        match question {
            Some(it) => {
                let shown = it["params"]["command"].as_str().unwrap_or_default();
                assert!(shown.contains(&line), "{} bytes of it", shown.len());
                assert!(tool_output.ends_with("the end\n"), "{tool_output}");
            }
            None => assert!(
                tool_output.contains("too long to be shown in full"),
                "{tool_output}"
            ),
        }
    }
}

#[test]
fn a_patch_changes_files_and_sends_the_turns_diff() {
    let patch = "*** Begin Patch\\n*** Add File: note.txt\\n+hello\\n*** End Patch\\n";
    let call = format!("{{ call = 'apply_patch', arguments = {{ input = \"{patch}\" }} }}");
    let (messages, tool_output, client) = play(&call, workspace(), "accept");
    let item = completed(&messages, "fileChange");
    assert_eq!(item["status"], "completed", "{item} {tool_output}");
    let written = std::fs::read_to_string(client.work().join("note.txt"));
    assert_eq!(written.expect("a file"), "hello\n");
    let diff = messages
        .iter()
        .find(|it| it["method"] == "turn/diff/updated")
        .expect("a diff");
    let diff = diff["params"]["diff"].as_str().unwrap_or_default();
    assert!(diff.contains("+hello"), "{diff}");
}

#[test]
fn a_declined_patch_in_a_read_only_sandbox_writes_no_file() {
    let patch = "*** Begin Patch\\n*** Add File: note.txt\\n+hello\\n*** End Patch\\n";
    let call = format!("{{ call = 'apply_patch', arguments = {{ input = \"{patch}\" }} }}");
    // Not the server's own home, which is hidden from tools.
    let folder = tempfile::tempdir().expect("a folder");
    let read_only = json!({"sandboxPolicy": {"type": "readOnly"}, "cwd": folder.path()});
    let (messages, tool_output, _client) = play(&call, read_only, "decline");
    assert!(
        messages
            .iter()
            .any(|it| it["method"] == "item/fileChange/requestApproval")
    );
    assert_eq!(completed(&messages, "fileChange")["status"], "declined");
    assert!(!folder.path().join("note.txt").exists());
    assert!(tool_output.contains("declined"), "{tool_output}");
}

#[test]
fn commands_left_running_end_with_the_turn() {
    let call = "{ call = 'exec_command', arguments = { cmd = 'echo begun; sleep 600', login = false, yield_time_ms = 250 } }";
    let (messages, tool_output, mut client) = play(call, workspace(), "accept");
    let item = completed(&messages, "commandExecution");
    assert_eq!(
        (&item["exitCode"], &item["processId"]),
        (&Value::Null, &json!("1"))
    );
    assert!(
        tool_output.contains("Process running with session ID 1"),
        "{tool_output}"
    );
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
    let messages = client.until(|it| it["method"] == "turn/completed");
    let item = completed(&messages, "commandExecution");
    assert_eq!(
        (&item["source"], &item["exitCode"]),
        (&json!("userShell"), &json!(0))
    );
    let output = item["aggregatedOutput"].as_str().unwrap_or_default();
    assert!(output.ends_with("mine\n"), "{item}");
}

/// Granted permissions widen the sandbox of later commands, and of nothing else; those for the turn
/// end with it.
#[test]
fn granted_permissions_widen_the_sandbox() {
    let [granted_folder, other] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let shown = |folder: &tempfile::TempDir| folder.path().display().to_string();
    let touch = format!(
        "touch {0}/$N {1}/$N here; echo tried $N",
        shown(&granted_folder),
        shown(&other)
    );
    let exec = |n: &str| {
        let line = touch.replace("$N", n);
        format!("{{ call = 'exec_command', arguments = {{ cmd = '{line}', login = false }} }}")
    };
    for (scope, gives, expected) in [
        ("turn", true, [true, false]),
        ("session", true, [true, true]),
        ("turn", false, [false, false]),
    ] {
        let (granted_folder, other) = (granted_folder.path(), other.path());
        let script = format!(
            "[[answer]]\nmatch = 'do it'\nsteps = [{{ call = 'request_permissions', arguments = {{ reason = 'to build', permissions = {{ file_system = {{ write = ['{0}', '{1}'] }}, network = {{ enabled = true }} }} }} }}]
             [[answer]]\nsteps = [{2}]\n[[answer]]\nsteps = [{{ text = 'Done.' }}]
             [[answer]]\nsteps = [{3}]\n[[answer]]\nsteps = [{{ text = 'Done.' }}]",
            granted_folder.display(),
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
        let messages = client.until(|it| it["method"] == "item/permissions/requestApproval");
        let question = messages.last().cloned().unwrap_or_default();
        let params = &question["params"];
        let paths = json!([granted_folder, other].map(|it| it.canonicalize().expect("a folder")));
        assert_eq!(
            params["permissions"]["fileSystem"]["write"], paths,
            "{params}"
        );
        assert_eq!(params["permissions"]["network"]["enabled"], true);
        assert_eq!(params["reason"], "to build");
        let permissions = match gives {
            true => json!({"fileSystem": {"write": [paths[0], "/"]}}),
            false => json!({}),
        };
        let result = json!({"permissions": permissions, "scope": scope});
        let answer = json!({"id": question["id"], "result": result});
        client.pipes.send(answer.to_string().as_bytes());
        client.until(|it| it["method"] == "turn/completed");
        say(&mut client, "again");
        client.until(|it| it["method"] == "turn/completed");
        let wrote = ["one", "two"].map(|it| granted_folder.join(it).exists());
        assert_eq!(wrote, expected, "{scope} {gives}");
        for n in ["one", "two"] {
            assert!(!other.join(n).exists(), "what was not granted");
            let _ = std::fs::remove_file(granted_folder.join(n));
        }
        assert!(
            !folder.path().join("here").exists(),
            "the workspace is read-only"
        );
    }
}
/// The sandbox follows the setting, wherever it comes from.
#[test]
fn the_configuration_sets_writable_roots() {
    let top = tempfile::tempdir().expect("a folder");
    let (work, outside) = (top.path().join("work"), top.path().join("beside"));
    std::fs::create_dir(&work).expect("a folder");
    std::fs::create_dir(&outside).expect("a folder");
    let file = outside.join("here");
    let call = format!(
        "{{ call = 'exec_command', arguments = {{ cmd = 'touch {}', login = false }} }}",
        file.display()
    );
    let narrow =
        "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n";
    let wide = format!("{narrow}writable_roots = [{outside:?}]\n");
    let dotted = json!({"sandbox_workspace_write.writable_roots": [outside]});
    let nested = json!({"sandbox_workspace_write": {"writable_roots": [outside]}});
    let mut client = MockClient::start(&script(&call), &[]);
    for (configured, config, may) in [
        (narrow, Value::Null, false),
        (wide.as_str(), Value::Null, true),
        (narrow, dotted, true),
        (narrow, nested, true),
    ] {
        std::fs::write(client.server.home().join("config.toml"), configured).expect("a file");
        let start = json!({"cwd": work, "sandbox": "workspace-write", "config": config});
        client.ask("thread/start", start);
        let started = client.until(|it| it["result"]["thread"]["id"].is_string());
        let started = started.last().cloned().unwrap_or_default();
        let id = started["result"]["thread"]["id"].as_str();
        client.thread = id.expect("a thread").to_owned();
        let (_, tool_output) = act(&mut client, Value::Null, "accept");
        assert_eq!(file.exists(), may, "{configured} {config}: {tool_output}");
        let _ = std::fs::remove_file(&file);
    }
}

/// A thread may be started in a folder that does not exist, as in Codex. The first command reports
/// it.
#[test]
fn a_command_in_a_missing_folder_names_the_folder() {
    let call = "{ call = 'exec_command', arguments = { cmd = 'pwd', login = false } }";
    let top = TempDir::new().expect("a folder");
    std::fs::write(top.path().join("file"), "").expect("a file");
    for sandbox in ["readOnly", "workspaceWrite", "dangerFullAccess"] {
        for (name, problem) in [("gone", "does not exist"), ("file", "is not a folder")] {
            let cwd = top.path().join(name);
            let start = json!({"cwd": cwd, "sandboxPolicy": {"type": sandbox}});
            let (messages, tool_output, _client) = play(call, start, "accept");
            assert_eq!(completed(&messages, "commandExecution")["status"], "failed");
            let expected = format!(
                "{} {problem}. It is the folder of the thread",
                cwd.display()
            );
            assert!(tool_output.contains(&expected), "{sandbox}: {tool_output}");
        }
    }
}

/// A command is not run in a folder that the sandbox hides, and the model receives the reason.
#[test]
fn a_command_is_not_run_in_a_hidden_folder() {
    let call = "{ call = 'exec_command', arguments = { cmd = 'ls -a', login = false } }";
    let (messages, tool_output, _client) = play(
        call,
        json!({"sandboxPolicy": {"type": "readOnly"}}),
        "accept",
    );
    assert_eq!(completed(&messages, "commandExecution")["status"], "failed");
    assert!(
        tool_output.contains("belongs to the server itself"),
        "{tool_output}"
    );
}
