//! `raddle mcp`: the MCP servers of `config.toml`.

use serde_json::{Value, json};

use super::CliHome;

const SERVERS: &str = "# mine\nmodel = \"m\" # why\n\n# Files.\n[mcp_servers.files]\ncommand = \"npx\"\n\
                       args = [\"-y\", \"a b\", \"--api-key\", \"sekret\"]\nenabled = false # for now\n\
                       env_vars = [\"HOME\"]\nstartup_timeout_sec = 1.5\n\n\
                       [mcp_servers.files.env]\nTOKEN = \"sekret\"\n\n\
                       [mcp_servers.files.tools.read]\napproval_mode = \"approve\"\n\n# Web.\n\
                       [mcp_servers.web]\nurl = \"https://h/mcp?k=sekret\"\n\
                       bearer_token_env_var = \"WEB_TOKEN\"\nhttp_headers = { X = \"sekret\" }\n\
                       disabled_tools = [\"write\"]\nnetwork = true\n";

#[test]
fn add_writes_what_codex_writes() {
    for (words, expected) in [
        (
            &["files", "--", "npx", "-y", "it", "--url", "x"][..],
            "[mcp_servers.files]\ncommand = \"npx\"\nargs = [\"-y\", \"it\", \"--url\", \"x\"]\n",
        ),
        (
            &["files", "npx", "-y", "it"],
            "[mcp_servers.files]\ncommand = \"npx\"\nargs = [\"-y\", \"it\"]\n",
        ),
        (
            &["files", "--env", "B=1", "--env", "A=x=y", "--", "npx"],
            "[mcp_servers.files]\ncommand = \"npx\"\n\n[mcp_servers.files.env]\nB = \"1\"\nA = \"x=y\"\n",
        ),
        (
            &["web", "--url", "http://h/mcp"],
            "[mcp_servers.web]\nurl = \"http://h/mcp\"\n",
        ),
        (
            &["web", "--bearer-token-env-var", "T", "--url", "https://h"],
            "[mcp_servers.web]\nurl = \"https://h\"\nbearer_token_env_var = \"T\"\n",
        ),
        (
            &[
                "web",
                "--oauth-resource",
                "https://r/",
                "--url",
                "https://h",
            ],
            "[mcp_servers.web]\nurl = \"https://h\"\noauth_resource = \"https://r/\"\n",
        ),
        (
            &["a.b/c@d:e", "--", "npx"],
            "[mcp_servers.\"a.b/c@d:e\"]\ncommand = \"npx\"\n",
        ),
    ] {
        let home = CliHome::new();
        let output = home.run(&[&["mcp", "add"][..], words].concat());
        let line = format!(
            "raddle: added the MCP server `{}` to HOME/config.toml\n",
            words[0]
        );
        assert_eq!((output.code, output.err), (Some(0), line), "{words:?}");
        assert_eq!(home.text(), expected, "{words:?}");
        let listed = home.run(&["mcp", "list"]);
        assert_eq!((listed.code, listed.err.as_str()), (Some(0), ""));
        assert!(listed.out.starts_with(words[0]), "{}", listed.out);
    }
}

#[test]
fn add_stores_a_registered_client() {
    let home = CliHome::new();
    let output = home.run(&[
        "mcp",
        "add",
        "web",
        "--url",
        "https://h/mcp",
        "--oauth-client-id",
        "me",
        "--oauth-client-secret",
        "sekret",
    ]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    let line = "the redirect URL of the OAuth client is http://127.0.0.1/callback";
    assert!(output.err.contains(line), "{}", output.err);
    let expected = "[mcp_servers.web]\nurl = \"https://h/mcp\"\n\n[mcp_servers.web.oauth]\n\
                    client_id = \"me\"\nclient_secret = \"sekret\"\n";
    assert_eq!(home.text(), expected);
    let output = home.run(&["config", "list"]);
    assert!(!output.out.contains("sekret"), "{}", output.out);
}

#[test]
fn a_server_is_replaced_and_removed_and_the_rest_of_the_file_stays() {
    let home = CliHome::with(SERVERS);
    let output = home.run(&["mcp", "add", "files", "--", "other"]);
    let line = "raddle: replaced the MCP server `files` in HOME/config.toml\n";
    assert_eq!((output.code, output.err.as_str()), (Some(0), line));
    let text = home.text();
    let replaced = "# mine\nmodel = \"m\" # why\n\n# Files.\n[mcp_servers.files]\n\
                    command = \"other\"\n\n# Web.\n[mcp_servers.web]\n";
    assert!(text.starts_with(replaced), "{text}");
    let output = home.run(&["mcp", "remove", "files"]);
    let line = "raddle: removed the MCP server `files` from HOME/config.toml\n";
    assert_eq!((output.code, output.err.as_str()), (Some(0), line));
    let text = home.text();
    assert!(text.starts_with("# mine\nmodel = \"m\" # why\n"), "{text}");
    assert!(text.contains("# Web.\n[mcp_servers.web]\n"), "{text}");
    assert!(!text.contains("files"), "{text}");
    let output = home.run(&["mcp", "remove", "files"]);
    assert_eq!(output.code, Some(1), "{}", output.err);
    let line = "no MCP server is named `files`; use one of web";
    assert!(output.err.contains(line), "{}", output.err);
}

#[test]
fn servers_are_listed_without_their_secrets() {
    let home = CliHome::with(SERVERS);
    let output = home.run(&["mcp", "list"]);
    let expected = "files  disabled  npx -y \"a b\" --api-key …\nweb    enabled   https://h/mcp…\n";
    assert_eq!((output.code, output.out.as_str()), (Some(0), expected));
    assert_eq!(output.err, "");
    let output = home.run(&["mcp", "get", "files"]);
    let expected = "files\n  type: stdio\n  command: npx\n  args: -y \"a b\" --api-key …\n  \
                    env: TOKEN=…\n  env_vars: HOME\n  enabled: false\n  required: false\n  \
                    startup_timeout_sec: 1.5\n  tool_timeout_sec: 120.0\n  \
                    default_tools_approval_mode: auto\n  network: true\n  sandbox: true\n  \
                    tools.read.approval_mode: approve\n";
    assert_eq!((output.code, output.out.as_str()), (Some(0), expected));
    let output = home.run(&["mcp", "get", "web"]);
    let expected = "web\n  type: streamable_http\n  url: https://h/mcp…\n  \
                    bearer_token_env_var: WEB_TOKEN\n  http_headers: X=…\n  enabled: true\n";
    assert!(output.out.starts_with(expected), "{}", output.out);
    for words in [
        &["mcp", "list", "--json"][..],
        &["mcp", "get", "files", "--json"],
    ] {
        let output = home.run(words);
        assert!(!output.out.contains("sekret"), "{}", output.out);
    }
}

/// The members that Codex prints have its names.
#[test]
fn json_has_the_members_of_codex() {
    let home = CliHome::with(SERVERS);
    let output = home.run(&["mcp", "list", "--json"]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    let listed: Value = serde_json::from_str(&output.out).expect("JSON");
    assert_eq!(listed.as_array().map(Vec::len), Some(2), "{listed}");
    let expected = json!({
        "name": "files", "enabled": false, "disabled_reason": null,
        "transport": {
            "type": "stdio", "command": "npx", "args": ["-y", "a b", "--api-key", "…"],
            "env": {"TOKEN": "…"}, "env_vars": ["HOME"], "cwd": null,
        },
        "required": false, "enabled_tools": null, "disabled_tools": null,
        "startup_timeout_sec": 1.5, "tool_timeout_sec": 120.0,
        "default_tools_approval_mode": "auto", "network": true, "sandbox": true,
        "tools": {"read": {"approval_mode": "approve"}},
    });
    assert_eq!(listed[0], expected);
    let transport = json!({
        "type": "streamable_http", "url": "https://h/mcp…", "bearer_token_env_var": "WEB_TOKEN",
        "http_headers": {"X": "…"}, "env_http_headers": null,
    });
    assert_eq!(listed[1]["transport"], transport);
    assert_eq!(listed[1]["disabled_tools"], json!(["write"]));
    let output = home.run(&["mcp", "get", "files", "--json"]);
    let printed: Value = serde_json::from_str(&output.out).expect("JSON");
    assert_eq!(printed, expected);
    assert_eq!(CliHome::new().run(&["mcp", "list", "--json"]).out, "[]\n");
}

#[test]
fn an_invalid_server_is_reported_beside_the_others() {
    let home = CliHome::with(
        "[mcp_servers.a]\ncommand = 'x'\nurl = 'http://h'\n[mcp_servers.b]\ncommand = 5\n\
         [mcp_servers.c]\ncommand = 'x'\n",
    );
    let output = home.run(&["mcp", "list"]);
    assert_eq!(
        (output.code, output.out.as_str()),
        (Some(0), "c  enabled   x\n")
    );
    assert_eq!(
        output.err,
        "raddle: warning: the MCP server `a` cannot be used: it has both `command` and `url`; remove one of them\n\
         raddle: warning: the MCP server `b` cannot be used: `command` under [mcp_servers.b] must be a string\n"
    );
    for words in [&["config", "list"][..], &["doctor"]] {
        let output = home.run(words);
        let text = format!("{}{}", output.out, output.err);
        for what in [
            "the MCP server `a` cannot be used: it has both `command` and `url`; remove one of them, in HOME/config.toml",
            "`command` under [mcp_servers.b] must be a string, in HOME/config.toml",
        ] {
            assert!(text.contains(what), "{words:?}: {text}");
        }
    }
}

/// A setting of the command line may complete or override a server.
#[test]
fn settings_of_the_command_line_count() {
    let home = CliHome::with("[mcp_servers.a]\ncommand = 'x'\n");
    for words in [
        &["-c", "mcp_servers.a.enabled=false", "mcp", "list"][..],
        &["mcp", "list", "-c", "mcp_servers.a.enabled=false"],
    ] {
        assert_eq!(home.run(words).out, "a  disabled  x\n", "{words:?}");
    }
    let setting = "mcp_servers.b.command=y";
    let output = home.run(&["mcp", "remove", "b", "-c", setting]);
    assert_eq!(output.code, Some(1));
    let line = "the MCP server `b` is defined in -c, not in HOME/config.toml; remove it there";
    assert!(output.err.contains(line), "{}", output.err);
    let output = home.run(&["mcp", "add", "b", "--url", "http://h", "-c", setting]);
    assert_eq!(output.code, Some(0));
    for line in [
        "added the MCP server `b` to HOME/config.toml",
        "warning: -c has another value, which takes precedence",
        "warning: the MCP server `b` cannot be used: it has both `command` and `url`; ",
    ] {
        assert!(output.err.contains(line), "{}", output.err);
    }
}

/// A server that offers a tool, a server that ends, and one that is off.
fn tested_servers() -> CliHome {
    let server = include_str!("../exec/mcp_server.py");
    CliHome::with(&format!(
        "[mcp_servers.demo]\ncommand = 'python3'\nargs = ['-c', '''{server}''']\n\
         enabled_tools = ['add', 'peek']\n\
         [mcp_servers.ends]\ncommand = 'sh'\nargs = ['-c', 'echo no key >&2; exit 3']\n\
         [mcp_servers.off]\ncommand = 'no-such-program'\nenabled = false\n"
    ))
}

#[test]
fn a_server_is_tested_as_a_thread_would_start_it() {
    let home = tested_servers();
    let output = home.run(&["mcp", "test", "demo", "--json"]);
    assert_eq!(output.code, Some(0), "{} {}", output.out, output.err);
    let test: Value = serde_json::from_str(&output.out).expect("JSON");
    assert_eq!(test["ok"], true, "{test}");
    assert_eq!(test["server"], json!({ "name": "test", "version": "1" }));
    assert_eq!(test["revision"], "2025-11-25");
    let names = json!(["mcp__demo__add", "mcp__demo__peek"]);
    assert_eq!(test["tools"], names, "{test}");
    assert_eq!(
        (&test["resources"], &test["prompts"]),
        (&json!(0), &json!(0))
    );
    let output = home.run(&["mcp", "test", "demo"]);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
    let (first, rest) = output.out.split_once('\n').expect("lines");
    assert!(first.starts_with("demo: connected in "), "{first}");
    let expected = "  server: test 1\n  revision: 2025-11-25\n  tools: 2\n    mcp__demo__add\n    \
                    mcp__demo__peek\n  resources: 0\n  prompts: 0\n";
    assert_eq!(rest, expected);
}

#[test]
fn a_test_of_a_server_that_fails_prints_the_cause_and_a_remedy() {
    let home = tested_servers();
    let output = home.run(&["mcp", "test", "--json"]);
    assert_eq!(output.code, Some(1), "{} {}", output.out, output.err);
    let tests: Value = serde_json::from_str(&output.out).expect("JSON");
    let tests = tests.as_array().expect("a list");
    let states = tests.iter().map(|it| (&it["name"], &it["ok"]));
    let expected = [("demo", true), ("ends", false)].map(|(name, ok)| (json!(name), json!(ok)));
    assert!(
        states.eq(expected.iter().map(|(name, ok)| (name, ok))),
        "{tests:?}"
    );
    for (words, parts) in [
        (
            &["mcp", "test", "ends"][..],
            &["ends: failed after", "no key", "  fix: run the command"][..],
        ),
        (
            &["mcp", "test", "off"],
            &["off: failed after", "no-such-program", "  fix: install"],
        ),
    ] {
        let output = home.run(words);
        assert_eq!((output.code, output.err.as_str()), (Some(1), ""));
        for part in parts {
            assert!(output.out.contains(part), "{part}: {}", output.out);
        }
    }
    let output = home.run(&["mcp", "test", "other"]);
    assert_eq!(output.code, Some(1));
    let line = "no MCP server is named `other`";
    assert!(output.err.contains(line), "{}", output.err);
    let output = CliHome::new().run(&["mcp", "test"]);
    let line = "raddle: no MCP server is enabled\n";
    assert_eq!((output.code, output.err.as_str()), (Some(0), line));
}

/// The handshake takes 3 s, and the list of tools never comes. One limit of 4 s covers both.
#[test]
fn one_limit_covers_the_start_and_the_list_of_tools() {
    let server = include_str!("mcp_slow_server.py");
    let home = CliHome::with(&format!(
        "[mcp_servers.slow]\ncommand = 'python3'\nargs = ['-c', '''{server}''']\n\
         startup_timeout_sec = 4\n"
    ));
    let output = home.run(&["mcp", "test", "slow", "--json"]);
    assert_eq!(output.code, Some(1), "{} {}", output.out, output.err);
    let test: Value = serde_json::from_str(&output.out).expect("JSON");
    let text = test.to_string();
    assert!(text.contains("it did not connect within 4 s"), "{test}");
    // The end of its stderr shows how far it came.
    assert!(text.contains("it lists no tools"), "{test}");
    let seconds = test["seconds"].as_f64().expect("a number");
    assert!((4.0..6.5).contains(&seconds), "{test}");
}
