//! `raddle doctor`: the problems of each part, and how to fix them.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use serde_json::Value;

use super::CliHome;

impl CliHome {
    /// Runs `doctor --json`. Returns the exit status and the finding of a part.
    fn part(&self, name: &str, words: &[&str]) -> (Option<i32>, Value) {
        let output = self.run(&[words, &["doctor", "--json"]].concat());
        let report: Value = serde_json::from_str(&output.out)
            .unwrap_or_else(|_| panic!("{}{}", output.out, output.err));
        let parts = report["parts"].as_array().expect("parts");
        let part = parts.iter().find(|it| it["part"] == name);
        (
            output.code,
            part.unwrap_or_else(|| panic!("{report}")).clone(),
        )
    }
}

#[test]
fn problems_of_configuration_and_model_are_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let own = |key: &str| {
        format!("model = 'own/m'\n[model_providers.own]\nbase_url = 'http://{address}/v1'\n{key}\n")
    };
    for (config, part, state, message, fix) in [
        (
            String::new(),
            "model",
            "error",
            "none is configured, so no turn can run",
            "raddle init",
        ),
        (
            "model = \n".to_owned(),
            "config",
            "error",
            "line 1",
            "fix that line",
        ),
        (
            "modle = 'x'\nmodel = 'openai/m'\nmodel_providers.openai.env_key = 'HERE'\n".to_owned(),
            "config",
            "warning",
            "not used",
            "config.toml",
        ),
        (
            "sandbox_mode = 'open'\n".to_owned(),
            "config",
            "error",
            "cannot be",
            "config.toml",
        ),
        (
            "budget.turn.euro = 1\n".to_owned(),
            "config",
            "error",
            "cannot be",
            "config.toml",
        ),
        (
            "approval_policy = 'sometimes'\n".to_owned(),
            "config",
            "error",
            "cannot be",
            "config.toml",
        ),
        (
            "model_context_window = 'wide'\n".to_owned(),
            "config",
            "error",
            "cannot be",
            "config.toml",
        ),
        (
            "sandbox_network.allowing = ['h']\n".to_owned(),
            "config",
            "error",
            "cannot be",
            "config.toml",
        ),
        (
            "model = 'nope/any'\n".to_owned(),
            "model",
            "error",
            "the model provider `nope` has no base_url",
            "docs/models.md",
        ),
        (
            "model = 'openai/m'\n".to_owned(),
            "model",
            "error",
            "OPENAI_API_KEY, which is not set",
            "export OPENAI_API_KEY=…",
        ),
        (
            format!(
                "model = 'llamacpp/any'\nmodel_providers.llamacpp.base_url = 'http://{address}'\n"
            ),
            "model",
            "ok",
            "any of llamacpp, which takes no key",
            "",
        ),
        (
            "model = 'm'\nmodel_provider = 'nobody'\n".to_owned(),
            "model",
            "error",
            "has no base_url",
            "docs/models.md",
        ),
        (
            own("env_key = 'HERE'"),
            "model",
            "ok",
            "whose key is in HERE",
            "",
        ),
        (
            own("key_file = '/nowhere/key'"),
            "model",
            "error",
            "cannot be read from /nowhere/key",
            "chmod 600",
        ),
        (
            own("key_file = '/dev/zero'"),
            "model",
            "error",
            "cannot be read from /dev/zero: it is no file",
            "chmod 600",
        ),
        (
            own("experimental_bearer_token = 'sekret'"),
            "model",
            "warning",
            "in the configuration",
            "key_file",
        ),
        (
            own("auth = { command = 'pass' }"),
            "model",
            "ok",
            "`pass` writes",
            "",
        ),
        (
            own("requires_openai_auth = true"),
            "model",
            "error",
            "no user is signed in",
            "`raddle login own` signs in",
        ),
    ] {
        let mut home = CliHome::with(&config);
        home.set("HERE", "sekret");
        let (code, finding) = home.part(part, &[]);
        assert_eq!(finding["state"], state, "{config} {finding}");
        assert!(
            finding["message"]
                .as_str()
                .is_some_and(|it| it.contains(message)),
            "{finding}"
        );
        assert!(finding["fix"].to_string().contains(fix), "{finding}");
        assert_eq!(
            finding["fix"].as_array().is_some_and(Vec::is_empty),
            state == "ok",
            "{finding}"
        );
        assert!(!finding.to_string().contains("sekret"), "{finding}");
        let is_broken = state == "error";
        assert_eq!(code, Some(i32::from(is_broken)), "{config} {finding}");
    }
}

/// Every problem is listed with its file. A value overridden by a stronger layer causes no failure.
#[test]
fn problems_that_block_threads_are_reported() {
    let home = CliHome::with("budget.turn.euro = 1\nsandbox_mode = 'open'\nmodle = 'x'\n");
    let (code, finding) = home.part("config", &[]);
    assert_eq!(code, Some(1), "{finding}");
    let problems: Vec<&str> = finding["more"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for line in [
        "`sandbox_mode` must be one of read-only, workspace-write, danger-full-access, in HOME/config.toml",
        "`budget.turn` has no `euro`; write one of tokens, usd, seconds, tool_calls, in HOME/config.toml",
        "`modle` is not used here (did you mean `model`?), in HOME/config.toml",
    ] {
        assert!(problems.contains(&line), "{problems:?}");
    }
    for config in [
        "sandbox_mode = 'open'\n",
        "default_permissions = 1\n",
        "fallback = 'openai/m'\n",
        "[budget.turn]\ntokens = 'many'\n",
        "sandbox_network.allow = 'h'\n",
        "sandbox_mode = 'workspace-write'\nsandbox_workspace_write.network_access = 1\n",
    ] {
        let (_, finding) = CliHome::with(config).part("config", &[]);
        let lines = finding["more"].as_array().map(Vec::len);
        assert_eq!(lines, Some(1), "{config} {finding}");
    }
    let mut home = CliHome::with("sandbox_mode = 'open'\nmodel = 'openai/m'\n");
    home.set("OPENAI_API_KEY", "k");
    for words in [
        &["-c", "sandbox_mode=read-only", "doctor", "--json"][..],
        &["doctor", "--json", "-c", "sandbox_mode=read-only"],
    ] {
        let output = home.run(words);
        assert_eq!(output.code, Some(0), "{}", output.out);
    }
}

#[test]
fn problems_of_folders_and_sockets_are_reported() {
    let home = CliHome::new();
    fs::set_permissions(home.home.path(), fs::Permissions::from_mode(0o777)).expect("a mode");
    let (_, finding) = home.part("home", &[]);
    assert_eq!(finding["fix"][0], "chmod go-w HOME", "{finding}");
    fs::create_dir_all(home.home.path().join("app-server-control")).expect("a folder");
    fs::write(
        home.home
            .path()
            .join("app-server-control/app-server-control.sock"),
        "",
    )
    .expect("it is written");
    let (_, finding) = home.part("socket", &[]);
    assert!(
        finding["message"]
            .as_str()
            .is_some_and(|it| it.ends_with("is no socket")),
        "{finding}"
    );
    let deep = home.home.path().join("d".repeat(90));
    let mut home = CliHome::new();
    home.set("RADDLE_HOME", deep.to_str().expect("a path"));
    let (_, finding) = home.part("socket", &[]);
    assert!(
        finding["fix"][0]
            .as_str()
            .is_some_and(|it| it.contains("RADDLE_HOME")),
        "{finding}"
    );
}

/// A server with a full backlog blocks clients that connect.
#[test]
fn a_server_with_a_full_backlog_is_reported() {
    let mut home = CliHome::with("model = 'openai/m'\n");
    home.set("OPENAI_API_KEY", "k");
    let folder = home.home.path().join("app-server-control");
    fs::create_dir_all(&folder).expect("a folder");
    let path = SocketAddrUnix::new(folder.join("app-server-control.sock")).expect("a short path");
    let new = |flags| {
        socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).expect("a socket")
    };
    let server = new(SocketFlags::empty());
    bind(&server, &path).expect("a free place");
    listen(&server, 0).expect("it listens");
    let mut clients = Vec::new();
    loop {
        let client = new(SocketFlags::NONBLOCK);
        if connect(&client, &path).is_err() {
            break;
        }
        clients.push(client);
    }
    let (code, finding) = home.part("socket", &[]);
    assert_eq!(finding["state"], "warning", "{finding}");
    assert!(
        finding.to_string().contains("accepts no connections"),
        "{finding}"
    );
    assert_eq!(code, Some(0));
}

#[test]
fn a_damaged_journal_is_broken() {
    let home = CliHome::new();
    let folder = home.home.path().join("threads");
    fs::create_dir_all(&folder).expect("a folder");
    let file = raddle_store::Options { folder }.file();
    fs::write(file, vec![7; 8192]).expect("it is written");
    let (code, finding) = home.part("threads", &[]);
    assert_eq!(
        (code, &finding["state"]),
        (Some(1), &Value::from("error")),
        "{finding}"
    );
    assert!(
        finding["fix"][0]
            .as_str()
            .is_some_and(|it| it.contains("raddle thread export --all")),
        "{finding}"
    );
}

/// With a cached sandbox result nothing blocks. The limit is far above the usual time, and far
/// below that of a network request.
#[test]
fn it_is_quick_and_prints_what_is_well() {
    let home = CliHome::with("model = 'any'\nmodel_provider = 'llamacpp'\n");
    let first = home.run(&["doctor"]);
    let begun = Instant::now();
    let output = home.run(&["doctor"]);
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
    for line in [
        "model: any of llamacpp",
        "config: HOME/config.toml, 2 values count",
        "threads: none yet in HOME/threads",
        "clock: plausible",
    ] {
        assert!(output.out.contains(line), "{}", output.out);
    }
    assert_eq!(first.code, output.code);
}

/// A provider on this machine is tried without `--online`. Without it no turn can run.
#[test]
fn the_port_of_a_local_provider_is_tried() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let open = listener.local_addr().expect("an address").port();
    for (base_url, code, line) in [
        (
            format!("http://127.0.0.1:{open}/v1"),
            0,
            format!("provider: llamacpp listens on 127.0.0.1:{open}\n"),
        ),
        (
            format!("http://localhost:{open}/v1"),
            0,
            format!("provider: llamacpp listens on localhost:{open}\n"),
        ),
        (
            "http://127.0.0.1:1/v1".to_owned(),
            1,
            "provider: llamacpp does not answer on 127.0.0.1:1: Connection refused (os error 111)\n\
             to fix:\n  start its model server, or set base_url of [model_providers.llamacpp] \
             in HOME/config.toml\n"
                .to_owned(),
        ),
    ] {
        let config = format!(
            "model = 'llamacpp/any'\n[model_providers.llamacpp]\nbase_url = '{base_url}'\n"
        );
        let output = CliHome::with(&config).run(&["doctor"]);
        assert_eq!(output.code, Some(code), "{}", output.out);
        assert!(output.out.starts_with("model: any of llamacpp"), "{}", output.out);
        assert!(output.out.contains(&line), "{}", output.out);
    }
}

#[test]
fn online_it_asks_the_provider() {
    let home = CliHome::with(
        "model = 'llamacpp/any'\n[model_providers.llamacpp]\nbase_url = 'http://127.0.0.1:1/v1'\nconnect_timeout_ms = 500\n",
    );
    let output = home.run(&["doctor", "--online"]);
    assert_eq!(output.code, Some(1), "{}{}", output.out, output.err);
    assert!(
        output.out.contains("provider: llamacpp does not answer: "),
        "{}",
        output.out
    );
    assert!(output.out.ends_with("broken: provider\n"), "{}", output.out);
}
