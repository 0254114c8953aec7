use super::*;
use crate::mcp_servers::ineffective_login_keys;

fn servers(config: &str) -> McpServers {
    read(&config.parse().expect("TOML"))
}

fn server(section: &str) -> McpServer {
    let all = servers(&format!("[mcp_servers.x]\n{section}"));
    assert!(all.problems.is_empty(), "{all:?}");
    McpServer::clone(&all.servers[0])
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|it| (*it).to_owned()).collect()
}

fn entry(name: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(name.to_owned(), value.to_owned())])
}

#[test]
fn a_program_has_its_defaults() {
    let expected = McpServer {
        name: "x".to_owned(),
        transport: McpTransport::Stdio {
            command: "npx".to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            env_vars: Vec::new(),
            cwd: None,
        },
        enabled: true,
        required: false,
        startup_timeout: Duration::from_secs(30),
        tool_timeout: Duration::from_secs(120),
        enabled_tools: None,
        disabled_tools: Vec::new(),
        approval: McpApproval::Auto,
        tool_approvals: BTreeMap::new(),
        network: true,
        sandbox: true,
        oauth: McpOauth::default(),
        plugin: None,
    };
    assert_eq!(server("command = 'npx'"), expected);
}

#[test]
fn every_key_of_a_program_is_read() {
    let read = server(
        "command = 'npx'\nargs = ['-y', 'it']\ncwd = '/srv'\nenabled = false\nrequired = true\n\
         env_vars = ['A', { name = 'B' }, { name = 'C', source = 'local' }, { name = 'D', source = 'remote' }]\n\
         startup_timeout_sec = 1.5\ntool_timeout_sec = 7\nenabled_tools = ['a', 'b']\n\
         disabled_tools = ['b']\ndefault_tools_approval_mode = 'writes'\nnetwork = false\n\
         sandbox = false\n[mcp_servers.x.env]\nE = 'f'\n[mcp_servers.x.tools.a]\n\
         approval_mode = 'approve'\n[mcp_servers.x.tools.b]\noutput_token_limit = 5\n",
    );
    let expected = McpServer {
        name: "x".to_owned(),
        transport: McpTransport::Stdio {
            command: "npx".to_owned(),
            args: texts(&["-y", "it"]),
            env: entry("E", "f"),
            env_vars: texts(&["A", "B", "C"]),
            cwd: Some("/srv".into()),
        },
        enabled: false,
        required: true,
        startup_timeout: Duration::from_millis(1500),
        tool_timeout: Duration::from_secs(7),
        enabled_tools: Some(texts(&["a", "b"])),
        disabled_tools: texts(&["b"]),
        approval: McpApproval::Prompt,
        tool_approvals: BTreeMap::from([("a".to_owned(), McpApproval::Approve)]),
        network: false,
        sandbox: false,
        oauth: McpOauth::default(),
        plugin: None,
    };
    assert_eq!(read, expected);
}

#[test]
fn every_key_of_an_address_is_read() {
    let read = server(
        "url = 'HTTPS://h/mcp'\nbearer_token_env_var = 'T'\nhttp_headers = { A = 'b' }\n\
         env_http_headers = { C = 'D' }\nstartup_timeout_ms = 250\n",
    );
    let expected = McpTransport::Http {
        url: "HTTPS://h/mcp".to_owned(),
        bearer_token_env_var: Some("T".to_owned()),
        headers: entry("A", "b"),
        env_headers: entry("C", "D"),
    };
    assert_eq!(read.transport, expected);
    assert_eq!(read.startup_timeout, Duration::from_millis(250));
}

/// The sections that Codex 0.166.0 was seen to accept, with all of its keys.
#[test]
fn sections_of_codex_are_accepted() {
    for section in [
        "command = 'a'\nscopes = ['s']\nenvironment_id = 'local'\nname = 'A'\n",
        "command = 'a'\ncwd = 'relative'\nunknown = 1\n",
        "command = 'a'\nstartup_timeout_ms = 1\nstartup_timeout_sec = 9\n",
        "command = 'a'\nsupports_parallel_tool_calls = true\nstartup_readiness = 'catalog'\n\
         tool_input_schema_max_bytes = 9\nomit_tools_from = ['code_mode']\n",
        "url = 'http://h/'\noauth_resource = 'r'\nauth = 'oauth'\nhttp_headers_helper = 'x'\n\
         scopes = []\n[mcp_servers.x.oauth]\nclient_id = 'c'\nclient_secret = 's'\n\
         callback_url = 'http://127.0.0.1/'\ncallback_port = 9\n",
        "url = 'http://h/'\nauth = 'ema_auth'\n[mcp_servers.x.oauth]\nclient_id = 'c'\n\
         client_secret = 's'\nauthorization_server_issuer = 'https://i'\n\
         token_endpoint_auth_method = 'client_secret_basic'\n",
    ] {
        server(section);
    }
    for name in ["a", "a_B-1", "'a:b@c/d.e'"] {
        let all = servers(&format!("[mcp_servers.{name}]\ncommand = 'a'\n"));
        assert_eq!((all.servers.len(), all.problems.len()), (1, 0), "{name}");
    }
}

#[test]
fn invalid_servers_are_left_out_with_a_problem() {
    for (section, expected) in [
        ("enabled = true", "it has neither `command` nor `url`; "),
        (
            "command = 'a'\nurl = 'http://h'",
            "it has both `command` and `url`; ",
        ),
        ("command = ' '", "`command` must name a program"),
        (
            "command = 5",
            "`command` under [mcp_servers.x] must be a string",
        ),
        (
            "command = 'a'\nargs = 'b'",
            "`args` under [mcp_servers.x] must be a list of strings",
        ),
        (
            "command = 'a'\nenv = { A = 1 }",
            "`env` under [mcp_servers.x] must be a table of strings",
        ),
        (
            "command = 'a'\nenabled = 'yes'",
            "`enabled` under [mcp_servers.x] must be true or false",
        ),
        (
            "command = 'a'\ntool_timeout_sec = -1",
            "`tool_timeout_sec` under [mcp_servers.x] must be a number of seconds above 0",
        ),
        (
            "command = 'a'\nstartup_timeout_ms = 0",
            "`startup_timeout_ms` must be above 0",
        ),
        (
            "command = 'a'\nbearer_token_env_var = 'T'",
            "`bearer_token_env_var` belongs to a server with `url`, and this one has `command`; ",
        ),
        (
            "url = 'http://h'\ncwd = '/'",
            "`cwd` belongs to a server with `command`, and this one has `url`; ",
        ),
        ("url = 'ftp://sekret'", "`url` must be an address with http"),
        ("url = 'sekret'", "`url` must be an address with http"),
        (
            "url = 'http:///sekret'",
            "`url` must be an address with http",
        ),
        (
            "url = 'http://h/ sekret'",
            "`url` must be an address with http",
        ),
        (
            "url = 'http://h'\nbearer_token = 'sekret'",
            "`bearer_token` is not supported; ",
        ),
        (
            "command = 'a'\n[mcp_servers.x.tools.t]\napproval_mode = 'never'",
            "`approval_mode` under [mcp_servers.x.tools.t] must be one of auto, prompt, ",
        ),
    ] {
        let config = format!("[mcp_servers.x]\n{section}\n[mcp_servers.y]\ncommand = 'b'\n");
        let all = servers(&config);
        let [problem] = &all.problems[..] else {
            panic!("{section}: {all:?}");
        };
        assert_eq!(problem.name, "x", "{section}");
        assert!(problem.text.starts_with(expected), "{}", problem.text);
        assert!(!problem.text.contains("sekret"), "{}", problem.text);
        assert_eq!(all.servers.len(), 1, "{section}");
    }
    for (config, name) in [
        ("[mcp_servers.'a b']\ncommand = 'a'", "a b"),
        ("[mcp_servers.'']\ncommand = 'a'", ""),
        ("[mcp_servers.'ä']\ncommand = 'a'", "ä"),
        ("mcp_servers.x = 5", "x"),
    ] {
        let all = servers(config);
        assert_eq!((all.servers.len(), all.problems.len()), (0, 1), "{config}");
        assert_eq!(all.problems[0].name, name, "{config}");
    }
    assert_eq!(servers("mcp_servers = 5"), McpServers::default());
}

#[test]
fn a_problem_says_whether_its_server_is_required() {
    for (section, expected) in [
        ("required = true", true),
        ("required = true\nenabled = false", false),
        ("required = true\nenabled = 'no'", true),
        ("required = true\ncommand = 5", true),
        ("required = 'true'\ncommand = 'a'", false),
        ("required = false", false),
        ("enabled = true", false),
    ] {
        let all = servers(&format!("[mcp_servers.x]\n{section}"));
        let required: Vec<bool> = all.problems.iter().map(|it| it.required).collect();
        assert_eq!(required, [expected], "{section}");
    }
}

#[test]
fn servers_are_sorted_by_name() {
    let all = servers("[mcp_servers.b]\ncommand = 'x'\n[mcp_servers.a]\nurl = 'http://h'\n");
    let names: Vec<&str> = all.servers.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn long_and_short_timeouts_are_limited() {
    for (value, expected) in [
        ("1e300", TIMEOUT_MAX),
        ("9223372036854775807", TIMEOUT_MAX),
        ("1e-300", TIMEOUT_MIN),
    ] {
        let read = server(&format!("command = 'a'\ntool_timeout_sec = {value}\n"));
        assert_eq!(read.tool_timeout, expected, "{value}");
    }
}

#[test]
fn keys_without_effect_are_warned_of() {
    for (section, expected) in [
        (
            "command = 'a'\nenvironment_id = 'local'\nauth = 'oauth'",
            "",
        ),
        (
            "command = 'a'\nenvironment_id = 'far'",
            "`environment_id` has no effect; ",
        ),
        (
            "url = 'http://h'\nhttp_headers_helper = 'x'",
            "`http_headers_helper` has no effect; ",
        ),
        (
            "url = 'http://h'\nauth = 'chatgpt'",
            "`auth` has no effect; ",
        ),
        (
            "url = 'http://h'\noauth = { callback_url = 'http://127.0.0.1/callback/x' }",
            "",
        ),
        (
            "url = 'http://h'\noauth = { callback_url = 'https://c.example/back' }",
            "`oauth.callback_url` has no effect; ",
        ),
        (
            "command = 'a'\nenv_vars = [{ name = 'A', source = 'remote' }]",
            "`env_vars` with the source `remote` ",
        ),
        (
            "command = 'a'\ntools.t.approval_mode = 'writes'",
            "the approval mode `writes` has the effect of `prompt`",
        ),
    ] {
        let config = format!("[mcp_servers.x]\n{section}\n");
        let warnings = ineffective_keys(&config.parse().expect("TOML"));
        let expected = (!expected.is_empty()).then(|| format!("the MCP server `x`: {expected}"));
        assert_eq!(warnings.len(), usize::from(expected.is_some()), "{section}");
        for ((name, text), expected) in warnings.iter().zip(expected) {
            assert_eq!(name, "x");
            assert!(text.starts_with(&expected), "{text}");
        }
    }
}

#[test]
fn debug_output_has_no_secrets() {
    let all = servers(
        "[mcp_servers.a]\ncommand = 'x'\nargs = ['--token', 'sekret']\nenv = { K = 'sekret' }\n\
         [mcp_servers.b]\nurl = 'http://h/?k=sekret'\nhttp_headers = { K = 'sekret' }\n",
    );
    let text = format!("{all:?}");
    assert!(!text.contains("sekret"), "{text}");
    assert!(text.contains("\"K\""), "{text}");
}

#[test]
fn a_login_has_the_settings_of_codex() {
    let section = "url = 'http://h/'\nscopes = ['a', 'b']\noauth_resource = 'r'\n\
                   [mcp_servers.x.oauth]\nclient_id = 'c'\nclient_secret = 's'\n\
                   token_endpoint_auth_method = 'client_secret_post'\n\
                   authorization_server_issuer = 'https://i'\n\
                   callback_url = 'http://localhost/back/1'\ncallback_port = 9\n";
    let expected = McpOauth {
        client_id: Some("c".to_owned()),
        client_secret: Some("s".to_owned()),
        client_auth: Some(McpClientAuth::Post),
        scopes: vec!["a".to_owned(), "b".to_owned()],
        resource: Some("r".to_owned()),
        issuer: Some("https://i".to_owned()),
        callback: Some(McpCallback {
            host: "localhost".to_owned(),
            port: 9,
            path: "/back/1".to_owned(),
        }),
    };
    assert_eq!(server(section).oauth, expected);
    assert!(!format!("{expected:?}").contains("\"s\""), "{expected:?}");
}

#[test]
fn the_redirect_of_a_login_is_on_this_machine() {
    let of = |url: &str| McpCallback::parse(url).map(|it| (it.host, it.port, it.path));
    for (url, expected) in [
        ("http://127.0.0.1", Some(("127.0.0.1", 0, "/"))),
        ("http://localhost:80/a/b", Some(("localhost", 80, "/a/b"))),
        ("http://127.0.0.1:99999/", None),
        ("http://127.0.0.1.evil.org/", None),
        ("http://127.0.0.1@evil.org/", None),
        ("https://127.0.0.1/", None),
        ("http://c.example/", None),
        ("http://127.0.0.1/a?b", None),
        ("http://127.0.0.1/a b", None),
    ] {
        let expected = expected.map(|(host, port, path)| (host.to_owned(), port, path.to_owned()));
        assert_eq!(of(url), expected, "{url}");
    }
    let all = servers(
        "mcp_oauth_callback_port = 7\n[mcp_servers.a]\nurl = 'http://h'\n\
         [mcp_servers.b]\nurl = 'http://h'\noauth = { callback_port = 8 }\n\
         [mcp_servers.c]\ncommand = 'x'\n",
    );
    let ports = all.servers.iter().map(|it| it.oauth.callback.as_ref());
    let ports: Vec<Option<u16>> = ports.map(|it| it.map(|it| it.port)).collect();
    assert_eq!(ports, [Some(7), Some(8), None]);
    let config = "mcp_oauth_callback_url = 'https://c.example'\nmcp_oauth_callback_port = 99999\n\
                  mcp_oauth_credentials_store = 'keyring'\n";
    let warnings = ineffective_login_keys(&config.parse().expect("TOML"));
    assert_eq!(warnings.len(), 3, "{warnings:?}");
}
