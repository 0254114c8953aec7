//! Tools of MCP servers in a turn.

use std::io::Write;

use super::*;
use crate::support::terminal::TestTerminal;

/// A server on stdio, in Python.
const SERVER: &str = include_str!("mcp_server.py");

/// Writes a configuration with one server named `demo`, and more keys for it.
fn configure(harness: &ExecHarness, keys: &str) {
    // The home is hidden from MCP servers, so the program is an argument.
    let text =
        format!("[mcp_servers.demo]\ncommand = 'python3'\nargs = ['-c', '''{SERVER}''']\n{keys}\n");
    fs::write(harness.home.path().join("config.toml"), text).expect("a configuration");
}

/// A model that waits for the servers, calls tools, and repeats the results.
fn script(calls: &[(&str, &str)]) -> String {
    let steps = calls.iter().map(|(tool, arguments)| {
        format!("{{ call = 'mcp__demo__{tool}', arguments = {{ {arguments} }} }}")
    });
    let steps: Vec<String> = steps.collect();
    format!(
        "[[answer]]\nmatch = 'go'\nsteps = [{{ call = 'wait_for_mcp_servers', arguments = {{}} }}]\n\
         [[answer]]\nmatch = 'connected'\nsteps = [{}]\n[[answer]]\nsteps = [{{ text = 'Done.' }}]",
        steps.join(", ")
    )
}

/// Runs a turn, and returns its `mcp_tool_call` items as they ended.
fn calls(harness: &ExecHarness, words: &[&str]) -> Vec<Value> {
    let mut words = words.to_vec();
    words.extend(["--json", "go"]);
    let output = harness.run(&words);
    assert_eq!(output.code, Some(0), "{output:?}");
    let ended = output.events().into_iter();
    let ended = ended.filter(|it| it["type"] == "item.completed");
    let items = ended.map(|it| it["item"].clone());
    let mut items: Vec<Value> = items.filter(|it| it["type"] == "mcp_tool_call").collect();
    // Calls of one answer run side by side.
    items.sort_by_key(|it| it["id"].as_str().map(str::to_owned));
    items
}

/// The names of the tools that a request offers to the model.
fn names(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().cloned().unwrap_or_default();
    let names = tools
        .into_iter()
        .map(|it| it["name"].as_str().unwrap_or_default().to_owned());
    names.collect()
}

fn text(item: &Value) -> &str {
    item["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
}

#[test]
fn a_tool_of_a_server_is_called_and_its_result_reaches_the_model() {
    let harness = ExecHarness::new(&script(&[("add", "a = 2, b = 3")]));
    configure(&harness, "");
    let items = calls(&harness, &[]);
    assert_eq!(items.len(), 1, "{items:?}");
    assert_eq!(
        (items[0]["server"].as_str(), items[0]["tool"].as_str()),
        (Some("demo"), Some("add"))
    );
    assert_eq!(text(&items[0]), "5");
    let requests = harness.mock.request_bodies();
    assert!(
        names(&requests[0]).contains(&"wait_for_mcp_servers".to_owned()),
        "{:?}",
        names(&requests[0])
    );
    let later = names(&requests[1]);
    assert!(later.contains(&"mcp__demo__add".to_owned()), "{later:?}");
    assert!(
        !later.contains(&"wait_for_mcp_servers".to_owned()),
        "{later:?}"
    );
    let last = requests.last().expect("a call")["input"].to_string();
    assert!(last.contains("5"), "{last}");
}

#[test]
fn a_server_runs_in_the_sandbox_of_its_thread() {
    let harness = ExecHarness::new("");
    let outside = tempfile::tempdir_in("/var/tmp").expect("a folder");
    let (inside, outside) = (
        harness.work.path().join("made"),
        outside.path().join("made"),
    );
    let home = harness.home.path();
    let write = |path: &Path| format!("path = '{}'", path.display());
    let peek = format!("name = 'RADDLE_TEST_SECRET', path = '{}'", home.display());
    let calls_to_make = [
        ("write", write(&inside)),
        ("write", write(&outside)),
        ("peek", peek),
    ];
    let calls_to_make: Vec<(&str, &str)> = calls_to_make
        .iter()
        .map(|(tool, it)| (*tool, it.as_str()))
        .collect();
    let harness = ExecHarness {
        mock: MockModel::start(&script(&calls_to_make)),
        ..harness
    };
    configure(&harness, "default_tools_approval_mode = 'approve'");
    let items = calls(&harness, &["--sandbox", "workspace-write"]);
    let texts: Vec<&str> = items.iter().map(text).collect();
    assert_eq!(texts[..2], ["done", "Read-only file system"], "{items:?}");
    assert!(texts[2].starts_with("variable=None"), "{texts:?}");
    assert!(!texts[2].contains("config.toml"), "{texts:?}");
    assert!(inside.exists() && !outside.exists());
}

/// Package runners run programs of the folder in which they start: that of a thread must be
/// trusted, or named in the configuration.
#[test]
fn a_server_starts_in_the_workspace_if_it_is_trusted_or_named() {
    for (keys, is_trusted, is_workspace) in [
        ("", false, false),
        ("cwd = '.'", false, true),
        ("", true, true),
    ] {
        let harness = ExecHarness::new(&script(&[("peek", "name = 'PWD', path = '.'")]));
        fs::write(harness.work.path().join("of-the-workspace"), "").expect("a file");
        let mut keys = keys.to_owned();
        if is_trusted {
            let work = harness.work.path().display();
            keys.push_str(&format!("\n[projects.'{work}']\ntrust_level = 'trusted'\n"));
        }
        configure(&harness, &keys);
        let items = calls(&harness, &[]);
        let seen = text(&items[0]);
        assert_eq!(
            seen.contains("of-the-workspace"),
            is_workspace,
            "{keys}: {seen}"
        );
    }
}

#[test]
fn a_tool_that_may_change_something_needs_approval() {
    let harness = ExecHarness::new(&script(&[
        ("write", "path = 'made'"),
        ("add", "a = 1, b = 1"),
    ]));
    configure(&harness, "");
    let items = calls(
        &harness,
        &[
            "-c",
            "approval_policy=on-request",
            "--sandbox",
            "workspace-write",
        ],
    );
    assert!(!harness.work.path().join("made").exists(), "{items:?}");
    let added: Vec<&str> = items
        .iter()
        .filter(|it| it["tool"] == "add")
        .map(text)
        .collect();
    assert_eq!(added, ["2"], "{items:?}");
}

#[test]
fn a_server_that_ends_fails_its_call_and_not_the_turn() {
    let harness = ExecHarness::new(&script(&[("die", "")]));
    configure(&harness, "");
    let items = calls(&harness, &[]);
    assert_eq!(items[0]["status"], "failed", "{items:?}");
}

#[test]
fn a_server_that_cannot_start_does_not_hold_up_a_turn() {
    let harness = ExecHarness::new("[[answer]]\nsteps = [{ text = 'Done.' }]");
    let text = "[mcp_servers.gone]\ncommand = 'no-such-program'\n\
                [mcp_servers.hangs]\ncommand = 'sleep'\nargs = ['600']\n";
    fs::write(harness.home.path().join("config.toml"), text).expect("a configuration");
    let output = harness.run(&["--json", "go"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.out.contains("Done."), "{output:?}");
}

#[test]
fn a_required_server_is_connected_before_the_first_model_call() {
    let harness = ExecHarness::new("[[answer]]\nsteps = [{ text = 'Done.' }]");
    configure(&harness, "required = true");
    let output = harness.run(&["--json", "go"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let offered = names(&harness.mock.request_bodies()[0]);
    assert!(
        offered.contains(&"mcp__demo__add".to_owned()),
        "{offered:?}"
    );
    assert!(
        !offered.contains(&"wait_for_mcp_servers".to_owned()),
        "{offered:?}"
    );
}

#[test]
fn a_turn_fails_without_a_required_server_and_names_it() {
    let harness = ExecHarness::new("[[answer]]\nsteps = [{ text = 'Done.' }]");
    let text = "[mcp_servers.gone]\ncommand = 'no-such-program'\nrequired = true\n";
    fs::write(harness.home.path().join("config.toml"), text).expect("a configuration");
    let output = harness.run(&["--json", "go"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    for part in [
        "`gone` is required",
        "no-such-program",
        "raddle mcp test gone",
    ] {
        assert!(output.out.contains(part), "{part}: {output:?}");
    }
    assert_eq!(harness.mock.request_bodies(), Vec::<Value>::new());
}

#[test]
fn a_turn_fails_with_the_problem_of_a_required_section() {
    let both = "command = 'a'\nurl = 'http://localhost:1/'\nrequired = true\n";
    let disabled = format!("{both}enabled = false\n");
    for (section, expected) in [
        (both, Some("it has both `command` and `url`")),
        (
            "command = 5\nrequired = true\n",
            Some("`command` under [mcp_servers.audit] must be a string"),
        ),
        (disabled.as_str(), None),
    ] {
        let harness = ExecHarness::new("[[answer]]\nsteps = [{ text = 'Done.' }]");
        let text = format!("[mcp_servers.audit]\n{section}");
        fs::write(harness.home.path().join("config.toml"), text).expect("a configuration");
        let output = harness.run(&["--json", "go"]);
        let Some(expected) = expected else {
            assert_eq!(output.code, Some(0), "{section}: {output:?}");
            continue;
        };
        assert_eq!(output.code, Some(1), "{section}: {output:?}");
        for part in ["`audit` cannot be used", expected, "`required = false`"] {
            assert!(output.out.contains(part), "{part}: {output:?}");
        }
        let requests = harness.mock.request_bodies();
        assert_eq!(requests, Vec::<Value>::new(), "{section}");
    }
}

/// A server whose tools change, in Python.
const CHANGING: &str = include_str!("mcp_changes.py");

/// Writes a configuration with this server, for a revision of the protocol.
fn configure_changing(harness: &ExecHarness, revision: &str) {
    let text = format!(
        "[mcp_servers.demo]\ncommand = 'python3'\nargs = ['-c', '''{CHANGING}''', '{revision}']\n"
    );
    fs::write(harness.home.path().join("config.toml"), text).expect("a configuration");
}

#[test]
fn a_tool_that_a_server_adds_is_offered() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let harness = ExecHarness::new(&script(&[("grow", "")]));
        configure_changing(&harness, revision);
        let items = calls(&harness, &[]);
        assert_eq!(text(&items[0]), "grown", "{revision}: {items:?}");
        let offered = names(harness.mock.request_bodies().last().expect("a call"));
        let is_offered = offered.contains(&"mcp__demo__grown".to_owned());
        assert!(is_offered, "{revision}: {offered:?}");
    }
}

#[test]
fn a_flood_of_changes_leads_to_few_requests() {
    let harness = ExecHarness::new(&script(&[("flood", "")]));
    configure_changing(&harness, "2025-11-25");
    let items = calls(&harness, &[]);
    let counted: Value = serde_json::from_str(text(&items[0])).expect("JSON");
    let (lists, seconds) = (counted["lists"].as_f64(), counted["seconds"].as_f64());
    let lists_max = 3.0 + seconds.expect("a duration");
    assert!(lists.expect("a number") <= lists_max, "{counted}");
}

#[test]
fn a_question_of_a_server_is_declined_without_a_terminal() {
    for (settings, expected) in [
        // The default policy asks nothing.
        (&[][..], None),
        (
            &["-c", "approval_policy=on-request"],
            Some(
                "denied, because there is no terminal to ask on: the MCP server demo asks: \
                 Which colour?",
            ),
        ),
    ] {
        let harness = ExecHarness::new(&script(&[("ask", "")]));
        configure(&harness, "");
        let mut words = settings.to_vec();
        words.push("go");
        let output = harness.run(&words);
        assert_eq!(output.code, Some(0), "{output:?}");
        let is_shown = expected.is_none_or(|it| output.err.contains(it));
        assert!(is_shown, "{output:?}");
        let request = harness.mock.request_bodies().pop().expect("a call");
        assert!(
            request["input"].to_string().contains("decline"),
            "{request}"
        );
    }
}

#[test]
fn a_form_of_a_server_is_filled_in_on_the_terminal() {
    let harness = ExecHarness::new(&script(&[("ask", "")]));
    configure(&harness, "");
    let mut terminal = TestTerminal::open();
    let mut exec = harness.command(&["-c", "approval_policy=on-request", "go"]);
    exec.stdin(terminal.program_side())
        .stderr(terminal.program_side());
    let child = exec.spawn().expect("started");
    terminal.wait_for("the MCP server demo asks: Which colour?");
    for (prompt, typed) in [("[y/n]", "y\n"), ("your answer: ", "amber\n")] {
        terminal.wait_for(prompt);
        let typing = terminal.user_side.write_all(typed.as_bytes());
        typing.expect("typed");
    }
    let output = ExecOutput::of(child.wait_with_output().expect("an end"));
    assert_eq!(output.code, Some(0), "{output:?} {}", terminal.shown());
    let request = harness.mock.request_bodies().pop().expect("a call");
    let input = request["input"].to_string();
    assert!(
        input.contains("accept") && input.contains("amber"),
        "{input}"
    );
}
