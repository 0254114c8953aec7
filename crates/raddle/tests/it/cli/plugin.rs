//! `raddle plugin`: templates, the test of plugins against the contract, and installation.

mod install;
mod tutorial;

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{CliHome, CliOutput};

/// The manifest of the test plugins, without their entrypoint.
const MANIFEST: &str = r#"
id = "org.example"
version = "1.2.3"
permissions = ["workspace.read"]
[[contributions.methods]]
name = "greeting/make"
example = { name = "Ada" }
"#;

/// The folder of a plugin. It is outside of the home, whose files plugins cannot read.
struct PluginFolder(TempDir);

impl PluginFolder {
    /// Creates a plugin in Python with these arguments.
    fn python(program: &str, args: &[&str]) -> Self {
        let words = [&["python3", "main.py"][..], args].concat();
        Self::of(&format!("entrypoint = {words:?}\n{MANIFEST}"), program)
    }

    fn of(manifest: &str, program: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join("plugin.toml"), manifest).expect("a manifest");
        fs::write(folder.path().join("main.py"), program).expect("a program");
        Self(folder)
    }

    fn path(&self) -> &str {
        self.0.path().to_str().expect("a path")
    }

    /// Tests the plugin, and returns the output as JSON.
    fn test(&self, words: &[&str]) -> (Option<i32>, Value) {
        let words = [&["plugin", "test", self.path(), "--json"][..], words].concat();
        let output = CliHome::new().run(&words);
        let context = format!("{} {}", output.out, output.err);
        (
            output.code,
            serde_json::from_str(&output.out).expect(&context),
        )
    }
}

fn steps(test: &Value) -> Vec<(&str, &str)> {
    let steps = test["steps"].as_array().expect("steps").iter();
    steps
        .filter_map(|it| Some((it["name"].as_str()?, it["outcome"].as_str()?)))
        .collect()
}

fn codes(test: &Value) -> Vec<&str> {
    let violations = test["violations"].as_array().expect("violations").iter();
    violations
        .map(|it| it["code"].as_str().expect("a code"))
        .collect()
}

/// Patterns of plugin authors, in the flow of the contract.
#[test]
fn plugins_with_blocking_calls_and_with_a_reader_thread_keep_the_contract() {
    let event = ("codex/event", "received as a notification");
    for (name, program, first) in [
        ("blocking", include_str!("plugin/blocking_call.py"), None),
        ("bridge", include_str!("plugin/bridge.py"), Some(event)),
    ] {
        let (code, test) = PluginFolder::python(program, &[]).test(&["--approve"]);
        assert_eq!(
            (code, &test["ok"]),
            (Some(0), &json!(true)),
            "{name}: {test}"
        );
        assert_eq!(
            (&test["id"], &test["version"]),
            (&json!("org.example"), &json!("1.2.3"))
        );
        let mut expected = vec![("plugin/health", "ok")];
        expected.extend(first);
        expected.extend([
            ("host/request_approval workspace.read", "approved"),
            ("greeting/make", "ok"),
            ("plugin/shutdown", "ok"),
        ]);
        assert_eq!(steps(&test), expected, "{name}");
    }
}

/// Without an option approvals are denied, and an error is a proper response then.
#[test]
fn approvals_are_denied_unless_they_are_asked_for() {
    let folder = PluginFolder::python(include_str!("plugin/blocking_call.py"), &[]);
    for words in [&[][..], &["--deny"]] {
        let (code, test) = folder.test(words);
        let expected = [
            ("plugin/health", "ok"),
            ("host/request_approval workspace.read", "denied"),
            (
                "greeting/make",
                "the plugin responded with an error: not approved",
            ),
            ("plugin/shutdown", "ok"),
        ];
        assert_eq!((code, steps(&test)), (Some(0), expected.to_vec()), "{test}");
    }
    let output = CliHome::new().run(&["plugin", "test", folder.path()]);
    let expected = "org.example 1.2.3: keeps the contract\n  plugin/health: ok\n  \
                    host/request_approval workspace.read: denied\n  greeting/make: the plugin \
                    responded with an error: not approved\n  plugin/shutdown: ok\n";
    assert_eq!(
        (output.code, output.out.as_str()),
        (Some(0), expected),
        "{}",
        output.err
    );
}

#[test]
fn methods_of_the_host_work_in_a_temporary_workspace() {
    let manifest = r#"
id = "org.example"
version = "1"
entrypoint = ["python3", "main.py"]
permissions = ["workspace.read", "workspace.write", "command.run", "secrets:TOKEN"]
[[contributions.methods]]
name = "act"
example = {}
"#;
    let folder = PluginFolder::of(manifest, include_str!("plugin/host_caller.py"));
    let (code, test) = folder.test(&["--approve", "--timeout", "60"]);
    assert_eq!((code, codes(&test)), (Some(0), Vec::new()), "{test}");
    let steps = steps(&test);
    let outcome = |name: &str| {
        let step = steps.iter().find(|(step, _)| *step == name);
        step.map(|(_, outcome)| *outcome)
    };
    for name in [
        "host/workspace_read README.md",
        "host/workspace_list",
        "host/workspace_write made.txt",
        "host/command_run cat made.txt",
        "host/secret TOKEN",
        "host/state_set seen",
        "host/state_get seen",
        "host/log done",
        "act",
    ] {
        assert_eq!(outcome(name), Some("ok"), "{name}: {steps:?}");
    }
    let outside = outcome("host/workspace_read /etc/passwd").unwrap_or_default();
    assert!(outside.contains("not in the workspace"), "{steps:?}");
    // Without the permissions, each method is refused, and nothing of it is a violation.
    let (code, test) = folder.test(&["--deny"]);
    assert_eq!((code, codes(&test)), (Some(0), Vec::new()), "{test}");
    assert!(test.to_string().contains("has not approved"), "{test}");
}

/// Faults of `planted.py`, the codes of the violations, and a part of the first message.
const PLANTED: &[(&str, &[&str], &str)] = &[
    ("none", &[], ""),
    ("banner", &["not_json_rpc"], "\"ready\""),
    ("farewell", &["not_json_rpc"], "\"bye\""),
    ("no version", &["no_jsonrpc_version"], "\"2.0\""),
    (
        "other id",
        &["health_identity"],
        "\"org.other\"; plugin.toml says \"org.example\"",
    ),
    (
        "not healthy",
        &["health_result"],
        "must have `\"ok\": true`",
    ),
    ("second response", &["unknown_id"], "\"raddle-1\""),
    (
        "no response",
        &["no_response"],
        "greeting/make has no response",
    ),
    ("error", &["call_failed"], "greeting/make failed"),
    (
        "result and error",
        &["result_and_error", "call_failed"],
        "both",
    ),
    (
        "malformed request",
        &["invalid_request"],
        "method must be a string",
    ),
    (
        "event of no call",
        &["event_call_id"],
        "no open call has the `call_id` \"raddle-99\"",
    ),
    ("long line", &["line_too_long"], "4 MiB"),
    (
        "permission not declared",
        &["permission_not_declared"],
        "\"command.run\"",
    ),
    ("approval of nothing", &["approval_params"], "`permission`"),
    (
        "unknown method of the host",
        &["unknown_host_method"],
        "\"host/format_disk\"",
    ),
    (
        "permission not asked",
        &["permission_not_asked"],
        "host/workspace_read before it asked for the permission \"workspace.read\"",
    ),
    (
        "undeclared permission used",
        &["permission_not_declared"],
        "\"command.run\"",
    ),
    (
        "params of the host",
        &["host_params"],
        "host/state_get are invalid: `key` must be",
    ),
    (
        "death in a call",
        &["exited_early"],
        "status 7 before it had answered greeting/make",
    ),
    ("empty shutdown", &["shutdown_result"], "{\"ok\": true}"),
    ("exit status", &["exit_status"], "the exit status is 3"),
    ("no exit", &["exit_timeout"], "within 5 s"),
];

#[test]
fn each_planted_violation_is_named() {
    let program = include_str!("plugin/planted.py");
    for (fault, expected, part) in PLANTED {
        let folder = PluginFolder::python(program, &[fault]);
        let is_slow = matches!(*fault, "no response" | "no exit");
        let limit = if is_slow { "5" } else { "60" };
        let (code, test) = folder.test(&["--timeout", limit]);
        assert_eq!(codes(&test), *expected, "{fault}: {test}");
        assert_eq!(code, Some(i32::from(!expected.is_empty())), "{fault}");
        let message = test["violations"][0]["message"]
            .as_str()
            .unwrap_or_default();
        assert!(message.contains(part), "{fault}: {message}");
    }
}

#[test]
fn a_plugin_that_cannot_be_started_violates_the_contract() {
    let keys = "id = 'a.b'\nversion = '1'\nentrypoint =";
    for (manifest, code, part) in [
        (
            format!("{keys} 'x'"),
            "manifest_invalid",
            "`entrypoint` must be a list",
        ),
        (
            format!("{keys} ['no-such-program']"),
            "start_failed",
            "no-such-program",
        ),
        (
            format!("{keys} ['./missing']"),
            "start_failed",
            "correct `entrypoint`",
        ),
    ] {
        let (status, test) = PluginFolder::of(&manifest, "").test(&[]);
        assert_eq!((status, codes(&test)), (Some(1), vec![code]), "{test}");
        let message = test["violations"][0]["message"]
            .as_str()
            .unwrap_or_default();
        assert!(message.contains(part), "{message}");
    }
    let folder = PluginFolder::python("import sys\nsys.exit('no key')", &[]);
    let output = CliHome::new().run(&["plugin", "test", folder.path()]);
    let expected = "  violation exited_early: the process ended with status 1 before it had \
                    answered plugin/health; it must run until it has answered plugin/shutdown\n  \
                    stderr:\n    no key\n";
    assert_eq!(output.code, Some(1));
    assert!(output.out.ends_with(expected), "{}", output.out);
}

fn new_plugin(folder: &TempDir, language: &str) -> CliOutput {
    let path = folder.path().join("my plugin");
    let path = path.to_str().expect("a path");
    CliHome::new().run(&["plugin", "new", path, "--lang", language])
}

#[test]
fn templates_are_short_and_keep_the_contract() {
    for (language, file, build) in [
        ("python", "main.py", None),
        ("typescript", "main.ts", None),
        ("go", "main.go", Some("go build -o plugin main.go")),
        (
            "rust",
            "main.rs",
            Some("rustc -O --edition 2021 -o plugin main.rs"),
        ),
    ] {
        let folder = TempDir::new().expect("a folder");
        let output = new_plugin(&folder, language);
        assert_eq!(
            (output.code, output.err.as_str()),
            (Some(0), ""),
            "{language}"
        );
        let plugin = folder.path().join("my plugin");
        let text = fs::read_to_string(plugin.join(file)).expect(file);
        assert!(text.lines().count() < 80, "{file}");
        assert!(text.contains("local.my-plugin"), "{file}");
        if let Some(build) = build {
            assert!(output.out.contains(build), "{}", output.out);
        }
        // Node.js and Go are not on every machine that runs these tests.
        if matches!(language, "typescript" | "go") {
            continue;
        }
        if let Some(build) = build {
            let mut command = Command::new("sh");
            let built = command.args(["-c", build]).current_dir(&plugin).output();
            let built = built.expect("a shell");
            assert!(
                built.status.success(),
                "{}",
                String::from_utf8_lossy(&built.stderr)
            );
        }
        let path = plugin.to_str().expect("a path");
        for (option, outcome) in [("--approve", "approved"), ("--deny", "denied")] {
            let output = CliHome::new().run(&["plugin", "test", path, option, "--json"]);
            let test: Value = serde_json::from_str(&output.out).expect("JSON");
            let expected = [
                ("plugin/health", "ok"),
                ("host/request_approval workspace.read", outcome),
                ("greeting/make", "ok"),
                ("plugin/shutdown", "ok"),
            ];
            assert_eq!(
                (output.code, steps(&test)),
                (Some(0), expected.to_vec()),
                "{test}"
            );
        }
    }
}

#[test]
fn a_new_plugin_replaces_nothing_and_needs_a_valid_id() {
    let folder = TempDir::new().expect("a folder");
    assert_eq!(new_plugin(&folder, "python").code, Some(0));
    let again = new_plugin(&folder, "python");
    assert_eq!(again.code, Some(1));
    assert!(again.err.contains("is not empty"), "{}", again.err);
    let other = folder.path().join("other");
    let other = other.to_str().expect("a path");
    let words = ["plugin", "new", other, "--lang", "go", "--id", "x\ny"];
    let output = CliHome::new().run(&words);
    assert_eq!(output.code, Some(1));
    assert!(
        output.err.contains("name another one with --id"),
        "{}",
        output.err
    );
}

/// The reference names each violation.
#[test]
fn the_reference_lists_the_violations() {
    let reference = include_str!("../../../../../docs/plugins-reference.md");
    let (_, table) = reference.split_once("## Violations\n").expect("a heading");
    let planted = PLANTED.iter().flat_map(|(_, codes, _)| *codes);
    for code in planted.chain(&["manifest_invalid", "start_failed", "processes_left"]) {
        assert!(table.contains(&format!("| `{code}` |")), "{code}");
    }
}
