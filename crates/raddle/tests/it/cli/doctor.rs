//! `raddle doctor`: each part with what is wrong, and how to mend it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use serde_json::Value;

use super::CliHome;

impl CliHome {
    /// What is said of a part, and with which exit status.
    fn part(&self, name: &str, words: &[&str]) -> (Option<i32>, Value) {
        let went = self.run(&[words, &["doctor", "--json"]].concat());
        let told: Value =
            serde_json::from_str(&went.out).unwrap_or_else(|_| panic!("{}{}", went.out, went.err));
        let parts = told["parts"].as_array().expect("parts");
        let part = parts.iter().find(|it| it["part"] == name);
        (went.code, part.unwrap_or_else(|| panic!("{told}")).clone())
    }
}

#[test]
fn what_is_wrong_with_the_configuration_or_the_model_is_said() {
    let own = |key: &str| {
        format!(
            "model = 'own/m'\n[model_providers.own]\nbase_url = 'http://127.0.0.1:9/v1'\n{key}\n"
        )
    };
    for (config, part, state, says, mend) in [
        (
            String::new(),
            "model",
            "odd",
            "none is configured",
            "raddle init",
        ),
        (
            "model = \n".to_owned(),
            "config",
            "broken",
            "line 1",
            "mend that line",
        ),
        (
            "modle = 'x'\n".to_owned(),
            "config",
            "odd",
            "not used",
            "config.toml",
        ),
        (
            "sandbox_mode = 'open'\n".to_owned(),
            "config",
            "broken",
            "cannot be",
            "config.toml",
        ),
        (
            "budget.turn.euro = 1\n".to_owned(),
            "config",
            "broken",
            "cannot be",
            "config.toml",
        ),
        (
            "approval_policy = 'sometimes'\n".to_owned(),
            "config",
            "broken",
            "cannot be",
            "config.toml",
        ),
        (
            "model_context_window = 'wide'\n".to_owned(),
            "config",
            "broken",
            "cannot be",
            "config.toml",
        ),
        (
            "sandbox_network.allowing = ['h']\n".to_owned(),
            "config",
            "broken",
            "cannot be",
            "config.toml",
        ),
        (
            "model = 'nope/any'\n".to_owned(),
            "model",
            "broken",
            "the model provider `nope` has no base_url",
            "docs/models.md",
        ),
        (
            "model = 'openai/m'\n".to_owned(),
            "model",
            "broken",
            "OPENAI_API_KEY, which is not set",
            "export OPENAI_API_KEY=…",
        ),
        (
            "model = 'llamacpp/any'\n".to_owned(),
            "model",
            "well",
            "any of llamacpp, which takes no key",
            "",
        ),
        (
            "model = 'm'\nmodel_provider = 'nobody'\n".to_owned(),
            "model",
            "broken",
            "has no base_url",
            "docs/models.md",
        ),
        (
            own("env_key = 'HERE'"),
            "model",
            "well",
            "whose key is in HERE",
            "",
        ),
        (
            own("key_file = '/nowhere/key'"),
            "model",
            "broken",
            "cannot be read from /nowhere/key",
            "chmod 600",
        ),
        (
            own("key_file = '/dev/zero'"),
            "model",
            "broken",
            "cannot be read from /dev/zero: it is no file",
            "chmod 600",
        ),
        (
            own("experimental_bearer_token = 'sekret'"),
            "model",
            "odd",
            "in the configuration",
            "key_file",
        ),
        (
            own("auth = { command = 'pass' }"),
            "model",
            "well",
            "`pass` writes",
            "",
        ),
        (
            own("requires_openai_auth = true"),
            "model",
            "broken",
            "nobody is signed in",
            "sign in",
        ),
    ] {
        let mut place = CliHome::with(&config);
        place.set("HERE", "sekret");
        let (code, found) = place.part(part, &[]);
        assert_eq!(found["state"], state, "{config} {found}");
        assert!(
            found["says"].as_str().is_some_and(|it| it.contains(says)),
            "{found}"
        );
        assert!(found["mend"].to_string().contains(mend), "{found}");
        assert_eq!(
            found["mend"].as_array().is_some_and(Vec::is_empty),
            state == "well",
            "{found}"
        );
        assert!(!found.to_string().contains("sekret"), "{found}");
        let is_broken = state == "broken";
        assert_eq!(code, Some(i32::from(is_broken)), "{config} {found}");
    }
}

/// What is wrong is in the list with its file, and what a stronger layer says otherwise keeps nothing from working.
#[test]
fn what_keeps_threads_from_starting_is_said() {
    let place = CliHome::with("budget.turn.euro = 1\nsandbox_mode = 'open'\nmodle = 'x'\n");
    let (code, found) = place.part("config", &[]);
    assert_eq!(code, Some(1), "{found}");
    let said: Vec<&str> = found["more"]
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
        assert!(said.contains(&line), "{said:?}");
    }
    for config in [
        "sandbox_mode = 'open'\n",
        "default_permissions = 1\n",
        "fallback = 'openai/m'\n",
        "[budget.turn]\ntokens = 'many'\n",
        "sandbox_network.allow = 'h'\n",
        "sandbox_mode = 'workspace-write'\nsandbox_workspace_write.network_access = 1\n",
    ] {
        let (_, found) = CliHome::with(config).part("config", &[]);
        let lines = found["more"].as_array().map(Vec::len);
        assert_eq!(lines, Some(1), "{config} {found}");
    }
    let place = CliHome::with("sandbox_mode = 'open'\n");
    for words in [
        &["-c", "sandbox_mode=read-only", "doctor", "--json"][..],
        &["doctor", "--json", "-c", "sandbox_mode=read-only"],
    ] {
        let went = place.run(words);
        assert_eq!(went.code, Some(0), "{}", went.out);
    }
}

#[test]
fn what_is_wrong_with_places_is_said() {
    let place = CliHome::new();
    fs::set_permissions(place.home.path(), fs::Permissions::from_mode(0o777)).expect("a mode");
    let (_, found) = place.part("home", &[]);
    assert_eq!(found["mend"][0], "chmod go-w HOME", "{found}");
    fs::create_dir_all(place.home.path().join("app-server-control")).expect("a folder");
    fs::write(
        place
            .home
            .path()
            .join("app-server-control/app-server-control.sock"),
        "",
    )
    .expect("it is written");
    let (_, found) = place.part("socket", &[]);
    assert!(
        found["says"]
            .as_str()
            .is_some_and(|it| it.ends_with("is no socket")),
        "{found}"
    );
    let deep = place.home.path().join("d".repeat(90));
    let mut place = CliHome::new();
    place.set("RADDLE_HOME", deep.to_str().expect("a path"));
    let (_, found) = place.part("socket", &[]);
    assert!(
        found["mend"][0]
            .as_str()
            .is_some_and(|it| it.contains("RADDLE_HOME")),
        "{found}"
    );
}

/// A server whose queue is full keeps whoever connects waiting.
#[test]
fn a_server_that_takes_nobody_in_is_said() {
    let place = CliHome::new();
    let folder = place.home.path().join("app-server-control");
    fs::create_dir_all(&folder).expect("a folder");
    let path = SocketAddrUnix::new(folder.join("app-server-control.sock")).expect("a short path");
    let new = |flags| {
        socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).expect("a socket")
    };
    let server = new(SocketFlags::empty());
    bind(&server, &path).expect("a free place");
    listen(&server, 0).expect("it listens");
    let mut held = Vec::new();
    loop {
        let client = new(SocketFlags::NONBLOCK);
        if connect(&client, &path).is_err() {
            break;
        }
        held.push(client);
    }
    let (code, found) = place.part("socket", &[]);
    assert_eq!(found["state"], "odd", "{found}");
    assert!(found.to_string().contains("takes nobody in"), "{found}");
    assert_eq!(code, Some(0));
}

#[test]
fn a_damaged_journal_is_broken() {
    let place = CliHome::new();
    let folder = place.home.path().join("threads");
    fs::create_dir_all(&folder).expect("a folder");
    let file = raddle_store::Options { folder }.file();
    fs::write(file, vec![7; 8192]).expect("it is written");
    let (code, found) = place.part("threads", &[]);
    assert_eq!(
        (code, &found["state"]),
        (Some(1), &Value::from("broken")),
        "{found}"
    );
    assert!(
        found["mend"][0]
            .as_str()
            .is_some_and(|it| it.contains("raddle thread export --all")),
        "{found}"
    );
}

/// Once the fence is known, nobody waits. The bound is far above what it takes, and far below what a question of
/// someone outside would.
#[test]
fn it_is_quick_and_prints_what_is_well() {
    let place = CliHome::with("model = 'any'\nmodel_provider = 'llamacpp'\n");
    let first = place.run(&["doctor"]);
    let begun = Instant::now();
    let went = place.run(&["doctor"]);
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
        assert!(went.out.contains(line), "{}", went.out);
    }
    assert_eq!(first.code, went.code);
}

#[test]
fn online_it_asks_the_provider() {
    let place = CliHome::with(
        "model = 'llamacpp/any'\n[model_providers.llamacpp]\nbase_url = 'http://127.0.0.1:1/v1'\nconnect_timeout_ms = 500\n",
    );
    let went = place.run(&["doctor", "--online"]);
    assert_eq!(went.code, Some(1), "{}{}", went.out, went.err);
    assert!(
        went.out.contains("provider: llamacpp does not answer: "),
        "{}",
        went.out
    );
    assert!(went.out.ends_with("broken: provider\n"), "{}", went.out);
}
