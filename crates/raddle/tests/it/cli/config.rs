//! `raddle config`: layers, and the origins of values.

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
        let mut home = CliHome::with(LAYERS);
        if let Some(value) = variable {
            home.set("RADDLE_MODEL", value);
        }
        let listed = home.run(&[flags, &["config", "list", "--origin"]].concat());
        let line = format!("model = \"{value}\"  # {origin}\n");
        assert!(listed.out.contains(&line), "{}{}", listed.out, listed.err);
        let output = home.run(&[flags, &["config", "get", "model"]].concat());
        assert_eq!((output.code, output.out), (Some(0), format!("{value}\n")));
    }
}

#[test]
fn a_setting_may_stand_after_the_command_too() {
    let home = CliHome::with(LAYERS);
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
        let output = home.run(words);
        assert!(
            output.out.contains("model = \"flag\"  # -c\n"),
            "{words:?}: {}",
            output.out
        );
    }
    let output = home.run(&[
        "-c",
        "model=one",
        "config",
        "get",
        "model",
        "-c",
        "model=two",
    ]);
    assert_eq!(output.out, "two\n");
    let output = home.run(&["config", "set", "model", "mine", "-c", "model=flag"]);
    assert!(
        output
            .err
            .contains("-c has another value, which takes precedence"),
        "{}",
        output.err
    );
    let output = home.run(&["model", "list", "--offline", "-c", "model=llamacpp/flag"]);
    assert_eq!(output.out, "llamacpp/flag  (default)\n");
}

/// Settings of permissions are never read from variables, which programs may set from files of a
/// workspace.
#[test]
fn variables_do_not_set_permissions() {
    let mut home = CliHome::new();
    home.set("RADDLE_SANDBOX_MODE", "danger-full-access");
    home.set("RADDLE_APPROVAL_POLICY", "never");
    assert_eq!(home.run(&["config", "list"]).out, "");
}

#[test]
fn secrets_are_not_shown() {
    let home = CliHome::with(LAYERS);
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
        let output = home.run(words);
        assert_eq!(output.code, Some(0), "{}", output.err);
        assert!(
            !format!("{}{}", output.out, output.err).contains("sekret"),
            "{words:?}"
        );
        assert!(output.out.contains('…'), "{}", output.out);
    }
}

/// Also under keys that Raddle does not know.
#[test]
fn secrets_under_other_keys_are_not_shown() {
    let home = CliHome::with(
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
        let output = home.run(words);
        assert_eq!(output.code, Some(0), "{}", output.err);
        let text = format!("{}{}", output.out, output.err);
        assert!(!text.contains("sekret"), "{words:?}: {text}");
        assert!(output.out.contains('…'), "{}", output.out);
    }
    assert_eq!(
        home.run(&["config", "get", "mcp_servers.x.command"]).out,
        "npx\n"
    );
    let output = home.run(&["config", "set", "my_token", "…"]);
    assert_eq!(output.code, Some(1), "{}", output.err);
    assert!(home.text().contains("my_token = 'sekret'"));
}

#[test]
fn an_invalid_value_is_shown_with_a_warning() {
    let home = CliHome::with("approval_policy = 'sometimes'\n");
    for (words, code, out) in [
        (&["config", "get", "approval_policy"][..], 0, "sometimes\n"),
        (&["config", "list"], 0, "approval_policy = \"sometimes\"\n"),
        (&["exec", "-c", "model=llamacpp/any", "hello"], 1, ""),
    ] {
        let output = home.run(words);
        assert_eq!(
            (output.code, output.out.as_str()),
            (Some(code), out),
            "{}",
            output.err
        );
        let what =
            "`approval_policy` must be one of untrusted, on-request, never, or a table `granular` ";
        assert!(output.err.contains(what), "{words:?}: {}", output.err);
        assert!(
            output.err.contains(", in HOME/config.toml"),
            "{words:?}: {}",
            output.err
        );
    }
    let output = CliHome::new().run(&["config", "set", "approval_policy", "sometimes"]);
    assert_eq!(output.code, Some(1), "{}", output.err);
    let output = home.run(&[
        "config",
        "get",
        "approval_policy",
        "-c",
        "approval_policy=never",
    ]);
    assert_eq!((output.out.as_str(), output.err.as_str()), ("never\n", ""));
}

#[test]
fn set_writes_the_file_and_keeps_comments() {
    let home = CliHome::with(LAYERS);
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
        let output = home.run(&[&["config"][..], words].concat());
        assert_eq!(output.code, Some(0), "{}", output.err);
        assert_eq!(
            output.err,
            format!("raddle: set `{}` in HOME/config.toml\n", words[1])
        );
        assert!(home.text().contains(after), "{}", home.text());
    }
    let output = home.run(&["config", "unset", "fallback"]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    assert!(!home.text().contains("fallback"), "{}", home.text());
    assert!(home.text().starts_with("# mine\n"), "{}", home.text());
}

#[test]
fn an_overridden_value_is_reported() {
    let mut home = CliHome::new();
    home.set("RADDLE_MODEL", "other");
    let output = home.run(&["config", "set", "model", "mine"]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    assert!(
        output
            .err
            .contains("RADDLE_MODEL has another value, which takes precedence"),
        "{}",
        output.err
    );
    assert_eq!(home.text(), "model = \"mine\"\n");
}

#[test]
fn an_invalid_value_is_not_written() {
    let home = CliHome::new();
    let output = home.run(&["config", "set", "sandbox_mode", "open"]);
    assert_eq!(output.code, Some(1));
    assert!(
        output
            .err
            .contains("`sandbox_mode` must be one of read-only,"),
        "{}",
        output.err
    );
    assert!(!home.config().exists());
}

/// Threads are rejected with such a value, whose type is right.
#[test]
fn a_value_that_threads_reject_is_warned_of() {
    for (key, value, warning) in [
        ("fallback", "['x']", "`fallback` must be a list of at most"),
        (
            "sandbox_network.deny",
            "['not a host']",
            "sandbox_network in the configuration",
        ),
        (
            "default_permissions",
            "mine",
            "unknown permission profile `mine`",
        ),
    ] {
        let home = CliHome::new();
        let output = home.run(&["config", "set", key, value]);
        assert_eq!(output.code, Some(0), "{}", output.err);
        let line = format!("raddle: warning: {warning}");
        assert!(output.err.contains(&line), "{}", output.err);
    }
}

/// An existing mistake does not prevent fixing it, or changing another key.
#[test]
fn a_file_with_a_mistake_can_be_fixed() {
    let home = CliHome::with("model = 7\nsandbox_mode = 'open'\n");
    for (key, value) in [("model", "m"), ("sandbox_mode", "read-only")] {
        let output = home.run(&["config", "set", key, value]);
        assert_eq!(output.code, Some(0), "{}", output.err);
    }
    assert_eq!(home.run(&["config", "list"]).err, "");
}

#[test]
fn unknown_keys_are_warned_of() {
    let home = CliHome::with("modle = 'x'\n[model_providers.a]\nbase_ulr = 'x'\n");
    let output = home.run(&["config", "list"]);
    assert_eq!(
        output.err,
        "raddle: warning: `base_ulr` under [model_providers.a] is not used here (did you mean `base_url`?), in HOME/config.toml\n\
         raddle: warning: `modle` is not used here (did you mean `model`?), in HOME/config.toml\n"
    );
    assert_eq!(
        output.out,
        "model_providers.a.base_ulr = \"x\"\nmodle = \"x\"\n"
    );
    let output = home.run(&["config", "set", "sandbox_mod", "read-only"]);
    assert_eq!(output.code, Some(0));
    assert!(
        output
            .err
            .contains("did you mean `sandbox_mode`?); `raddle config unset sandbox_mod`"),
        "{}",
        output.err
    );
}

#[test]
fn unset_keys_are_reported() {
    let home = CliHome::new();
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
        let output = home.run(&["config", "get", key]);
        assert_eq!(
            (output.code, output.out.as_str(), output.err.as_str()),
            (Some(1), "", line)
        );
    }
}

#[test]
fn paths_are_printed() {
    let home = CliHome::new();
    assert_eq!(home.run(&["config", "path"]).out, "HOME/config.toml\n");
    assert_eq!(
        home.run(&["config", "path", "--system"]).out,
        "/etc/raddle/config.toml\n"
    );
}

/// The committed schema equals the printed one, and the configurations of the docs match it.
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
