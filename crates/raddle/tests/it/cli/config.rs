//! `raddle config`: layers, and where values come from.

use serde_json::Value;

use super::CliHome;

const LAYERS: &str = "# mine\nmodel = \"file\" # why\n\n[model_providers.a]\nbase_url = \"http://127.0.0.1:9/v1?key=sekret\"\n\
                      experimental_bearer_token = \"sekret\"\n";

#[test]
fn the_stronger_layer_counts_and_is_named() {
    for (variable, flags, value, origin) in [
        (None, &[][..], "file", "HOME/config.toml"),
        (Some("variable"), &[], "variable", "RADDLE_MODEL"),
        (Some(" "), &[], "file", "HOME/config.toml"),
        (Some("variable"), &["-c", "model=flag"], "flag", "-c"),
        (None, &["-c", "model=one", "-c", "model=two"], "two", "-c"),
    ] {
        let mut place = CliHome::with(LAYERS);
        if let Some(value) = variable {
            place.set("RADDLE_MODEL", value);
        }
        let listed = place.run(&[flags, &["config", "list", "--origin"]].concat());
        let line = format!("model = \"{value}\"  # {origin}\n");
        assert!(listed.out.contains(&line), "{}{}", listed.out, listed.err);
        let got = place.run(&[flags, &["config", "get", "model"]].concat());
        assert_eq!((got.code, got.out), (Some(0), format!("{value}\n")));
    }
}

#[test]
fn a_setting_may_stand_after_the_command_too() {
    let place = CliHome::with(LAYERS);
    for words in [
        &["config", "list", "--origin", "-c", "model=flag"][..],
        &["config", "list", "-c", "model=flag", "--origin"],
        &[
            "-c",
            "model=one",
            "config",
            "list",
            "--origin",
            "--config",
            "model=flag",
        ],
    ] {
        let went = place.run(words);
        assert!(
            went.out.contains("model = \"flag\"  # -c\n"),
            "{words:?}: {}",
            went.out
        );
    }
    let went = place.run(&[
        "-c",
        "model=one",
        "config",
        "get",
        "model",
        "-c",
        "model=two",
    ]);
    assert_eq!(went.out, "two\n");
    let went = place.run(&["config", "set", "model", "mine", "-c", "model=flag"]);
    assert!(
        went.err.contains("-c says something else, and is stronger"),
        "{}",
        went.err
    );
    let went = place.run(&["model", "list", "--offline", "-c", "model=llamacpp/flag"]);
    assert_eq!(went.out, "llamacpp/flag  (default)\n");
}

/// What says what an agent may do is never taken from variables, which programs set from files of a workspace.
#[test]
fn variables_do_not_say_what_an_agent_may_do() {
    let mut place = CliHome::new();
    place.set("RADDLE_SANDBOX_MODE", "danger-full-access");
    place.set("RADDLE_APPROVAL_POLICY", "never");
    assert_eq!(place.run(&["config", "list"]).out, "");
}

#[test]
fn secrets_are_not_shown() {
    let place = CliHome::with(LAYERS);
    for words in [
        &["config", "list"][..],
        &["config", "list", "--json"],
        &["config", "get", "model_providers"],
        &[
            "config",
            "get",
            "model_providers.a.experimental_bearer_token",
        ],
        &["config", "get", "--json", "model_providers.a"],
    ] {
        let went = place.run(words);
        assert_eq!(went.code, Some(0), "{}", went.err);
        assert!(
            !format!("{}{}", went.out, went.err).contains("sekret"),
            "{words:?}"
        );
        assert!(went.out.contains('…'), "{}", went.out);
    }
}

/// Also where nobody here knows what a key is for.
#[test]
fn secrets_under_other_keys_are_not_shown() {
    let place = CliHome::with(
        "my_token = 'sekret'\n[mcp_servers.x]\ncommand = 'npx'\nargs = ['-y', '--api-key', 'sekret']\n\
         env = { TOKEN = 'sekret' }\nheaders = { X = 'sekret' }\n",
    );
    for words in [
        &["config", "list"][..],
        &["config", "list", "--json"],
        &["config", "get", "my_token"],
        &["config", "get", "mcp_servers.x.env.TOKEN"],
        &["config", "get", "mcp_servers", "--json"],
    ] {
        let went = place.run(words);
        assert_eq!(went.code, Some(0), "{}", went.err);
        let said = format!("{}{}", went.out, went.err);
        assert!(!said.contains("sekret"), "{words:?}: {said}");
        assert!(went.out.contains('…'), "{}", went.out);
    }
    assert_eq!(
        place.run(&["config", "get", "mcp_servers.x.command"]).out,
        "npx\n"
    );
    let went = place.run(&["config", "set", "my_token", "…"]);
    assert_eq!(went.code, Some(1), "{}", went.err);
    assert!(place.text().contains("my_token = 'sekret'"));
}

#[test]
fn a_wrong_value_is_shown_with_what_is_wrong() {
    let place = CliHome::with("approval_policy = 'sometimes'\n");
    for (words, code, out) in [
        (&["config", "get", "approval_policy"][..], 0, "sometimes\n"),
        (&["config", "list"], 0, "approval_policy = \"sometimes\"\n"),
        (&["exec", "-c", "model=llamacpp/any", "hello"], 1, ""),
    ] {
        let went = place.run(words);
        assert_eq!(
            (went.code, went.out.as_str()),
            (Some(code), out),
            "{}",
            went.err
        );
        let what =
            "`approval_policy` must be one of untrusted, on-request, never, or a table `granular` ";
        assert!(went.err.contains(what), "{words:?}: {}", went.err);
        assert!(
            went.err.contains(", in HOME/config.toml"),
            "{words:?}: {}",
            went.err
        );
    }
    let went = CliHome::new().run(&["config", "set", "approval_policy", "sometimes"]);
    assert_eq!(went.code, Some(1), "{}", went.err);
    let went = place.run(&[
        "config",
        "get",
        "approval_policy",
        "-c",
        "approval_policy=never",
    ]);
    assert_eq!((went.out.as_str(), went.err.as_str()), ("never\n", ""));
}

#[test]
fn what_is_set_is_in_the_file_and_comments_stay() {
    let place = CliHome::with(LAYERS);
    for (words, after) in [
        (
            &["set", "model", "x"][..],
            "# mine\nmodel = \"x\" # why\n\n[model_providers.a]\n",
        ),
        (
            &["set", "model_context_window", "1000"],
            "model_context_window = 1000\n",
        ),
        (&["set", "fallback", "[\"a/b\"]"], "fallback = [\"a/b\"]\n"),
        (
            &["set", "sandbox_workspace_write.network_access", "true"],
            "[sandbox_workspace_write]\nnetwork_access = true\n",
        ),
    ] {
        let went = place.run(&[&["config"][..], words].concat());
        assert_eq!(went.code, Some(0), "{}", went.err);
        assert_eq!(
            went.err,
            format!("raddle: set `{}` in HOME/config.toml\n", words[1])
        );
        assert!(place.text().contains(after), "{}", place.text());
    }
    let went = place.run(&["config", "unset", "fallback"]);
    assert_eq!(went.code, Some(0), "{}", went.err);
    assert!(!place.text().contains("fallback"), "{}", place.text());
    assert!(place.text().starts_with("# mine\n"), "{}", place.text());
}

#[test]
fn a_value_that_does_not_count_is_said() {
    let mut place = CliHome::new();
    place.set("RADDLE_MODEL", "other");
    let went = place.run(&["config", "set", "model", "mine"]);
    assert_eq!(went.code, Some(0), "{}", went.err);
    assert!(
        went.err
            .contains("RADDLE_MODEL says something else, and is stronger"),
        "{}",
        went.err
    );
    assert_eq!(place.text(), "model = \"mine\"\n");
}

#[test]
fn a_value_that_cannot_be_is_not_written() {
    let place = CliHome::new();
    let went = place.run(&["config", "set", "sandbox_mode", "open"]);
    assert_eq!(went.code, Some(1));
    assert!(
        went.err
            .contains("`sandbox_mode` must be one of read-only,"),
        "{}",
        went.err
    );
    assert!(!place.config().exists());
}

/// What is wrong already does not keep anyone from mending it, or something else.
#[test]
fn a_file_with_a_mistake_can_be_mended() {
    let place = CliHome::with("model = 7\nsandbox_mode = 'open'\n");
    for (key, value) in [("model", "m"), ("sandbox_mode", "read-only")] {
        let went = place.run(&["config", "set", key, value]);
        assert_eq!(went.code, Some(0), "{}", went.err);
    }
    assert_eq!(place.run(&["config", "list"]).err, "");
}

#[test]
fn keys_that_nobody_reads_are_warned_of() {
    let place = CliHome::with("modle = 'x'\n[model_providers.a]\nbase_ulr = 'x'\n");
    let went = place.run(&["config", "list"]);
    assert_eq!(
        went.err,
        "raddle: warning: `base_ulr` under [model_providers.a] is not used here (did you mean `base_url`?), in HOME/config.toml\n\
         raddle: warning: `modle` is not used here (did you mean `model`?), in HOME/config.toml\n"
    );
    assert_eq!(
        went.out,
        "model_providers.a.base_ulr = \"x\"\nmodle = \"x\"\n"
    );
    let went = place.run(&["config", "set", "sandbox_mod", "read-only"]);
    assert_eq!(went.code, Some(0));
    assert!(
        went.err
            .contains("did you mean `sandbox_mode`?); `raddle config unset sandbox_mod`"),
        "{}",
        went.err
    );
}

#[test]
fn what_nobody_says_is_said() {
    let place = CliHome::new();
    for (key, line) in [
        (
            "sandbox_mode",
            "raddle: `sandbox_mode` is not set; without it: `read-only`\n",
        ),
        (
            "modle",
            "raddle: `modle` is not set; `modle` is not used here (did you mean `model`?)\n",
        ),
    ] {
        let went = place.run(&["config", "get", key]);
        assert_eq!(
            (went.code, went.out.as_str(), went.err.as_str()),
            (Some(1), "", line)
        );
    }
}

#[test]
fn paths_are_printed() {
    let place = CliHome::new();
    assert_eq!(place.run(&["config", "path"]).out, "HOME/config.toml\n");
    assert_eq!(
        place.run(&["config", "path", "--system"]).out,
        "/etc/raddle/config.toml\n"
    );
}

/// The committed schema is what the binary prints, and the configurations of the docs fit it.
#[test]
fn the_schema_is_the_one_of_the_docs() {
    let printed = CliHome::new().run(&["config", "schema"]).out;
    let committed = include_str!("../../../../../docs/config.schema.json");
    assert_eq!(printed, committed, "run `cargo xtask gen`");
    let schema: Value = serde_json::from_str(&printed).expect("JSON");
    let kinds = &schema["properties"]["model_providers"]["additionalProperties"]["properties"]["wire_api"]
        ["enum"];
    let wires = raddle_model::WireFormat::ALL.map(|it| it.name());
    let named: Vec<&str> = kinds
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    for wire in wires {
        assert!(named.contains(&wire), "{wire}");
    }
    assert_eq!(named.len(), wires.len());
}
