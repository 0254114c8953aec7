use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::json;

use super::*;

const LEAST: &str = "id = 'org.name'\nversion = '0.1.0'\nentrypoint = ['python3', 'main.py']\n";

/// Reads a manifest, or returns its error with `FILE` as its path.
fn read(text: &str) -> Result<Manifest, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join(MANIFEST_FILE);
    std::fs::write(&file, text).expect("a manifest");
    let file = file.display().to_string();
    Manifest::read(folder.path()).map_err(|error| error.to_string().replace(&file, "FILE"))
}

#[test]
fn three_keys_are_enough() {
    let manifest = read(LEAST).expect("a manifest");
    let expected = Manifest {
        id: "org.name".to_owned(),
        version: "0.1.0".to_owned(),
        entrypoint: vec!["python3".to_owned(), "main.py".to_owned()],
        permissions: Vec::new(),
        methods: Vec::new(),
        tools: Vec::new(),
        hooks: Vec::new(),
        model_provider: None,
        skills: None,
        mcp_servers: Vec::new(),
        warnings: Vec::new(),
    };
    assert_eq!(manifest, expected);
}

#[test]
fn permissions_and_methods_are_read_and_unknown_keys_are_reported() {
    let manifest = read(&format!(
        "{LEAST}permissions = ['workspace.read', 'network:example.org', 'secrets:TOKEN']\n\
         colour = 1\n[contributions]\nsongs = []\n[[contributions.methods]]\nname = 'a/b'\n\
         example = {{ n = 1, list = ['x'] }}\nslow = true\n[[contributions.methods]]\nname = 'c'\n"
    ))
    .expect("a manifest");
    assert_eq!(manifest.permissions.len(), 3);
    let example = Some(json!({ "n": 1, "list": ["x"] }));
    let method = |name: &str, example| PluginMethod {
        name: name.to_owned(),
        example,
    };
    assert_eq!(
        manifest.methods,
        [method("a/b", example), method("c", None)]
    );
    let keys = [
        "contributions.methods.slow",
        "contributions.songs",
        "colour",
    ];
    let expected =
        keys.map(|key| format!("plugin.toml: the key `{key}` is not known, and has no effect"));
    assert_eq!(manifest.warnings, expected);
}

#[test]
fn errors_name_the_file_the_key_and_the_remedy() {
    let rest = |lines: &str| format!("{LEAST}{lines}");
    let method = |lines: &str| format!("{LEAST}[[contributions.methods]]\n{lines}");
    for (text, expected) in [
        (
            "".to_owned(),
            "FILE: `id` is missing; add `id = \"org.name\"`",
        ),
        (
            "id = 'name'\nversion = '1'".to_owned(),
            "FILE: `id` is `name`; join two or more parts of letters, digits, - and _ with dots, \
             as in \"org.name\"",
        ),
        (
            "id = 'a.b'\nversion = 1".to_owned(),
            "FILE: `version` must be a string of 1 to 200 bytes, without control characters; \
             write it as in `version = \"0.1.0\"`",
        ),
        (
            "id = 'a.b'\nversion = '1'".to_owned(),
            "FILE: `entrypoint` is missing; add `entrypoint = [\"python3\", \"main.py\"]`",
        ),
        (
            "id = 'a.b'\nversion = '1'\nentrypoint = 'x'".to_owned(),
            "FILE: `entrypoint` must be a list of strings; write it as in `entrypoint = \
             [\"python3\", \"main.py\"]`",
        ),
        (
            "id = 'a.b'\nversion = '1'\nentrypoint = []".to_owned(),
            "FILE: `entrypoint` names no program; name the program first, as in \
             [\"python3\", \"main.py\"]",
        ),
        (
            rest("permissions = ['all']"),
            "FILE: `permissions` has the unknown permission `all`; use workspace.read, \
             workspace.write, command.run, model.call, secrets:NAME or network:HOST",
        ),
        (
            method("example = {}"),
            "FILE: `contributions.methods.name` is missing; add `name = \"greeting/make\"`",
        ),
        (
            method("name = 'plugin/x'"),
            "FILE: `contributions.methods` has the name `plugin/x`; the contract defines plugin/ \
             and host/; choose another prefix",
        ),
        (
            method("name = 'x'\nexample = 1"),
            "FILE: `contributions.methods.example` must be a table; write it as in \
             `example = { name = \"Ada\" }`",
        ),
    ] {
        assert_eq!(read(&text).expect_err(&text), expected);
    }
    let error = read("id = ").expect_err("no TOML");
    assert!(
        error.starts_with("FILE is not valid TOML; correct it: "),
        "{error}"
    );
    let missing = Manifest::read(Path::new("/nonexistent")).expect_err("no folder");
    assert!(
        missing.to_string().ends_with("which contains plugin.toml"),
        "{missing}"
    );
    let text = "x".repeat(17 << 10);
    let schema = format!(
        "{LEAST}[[contributions.tools]]\nname = 'a'\nmethod = 'a'\ndescription = 'A.'\n\
         input_schema = {{ type = 'object', title = '{text}' }}\n"
    );
    let long = read(&schema).expect_err("a long schema");
    let expected = "FILE: `contributions.tools.input_schema` is longer than 16384 bytes as JSON; \
                    shorten it";
    assert_eq!(long, expected);
    let long = read(&"#".repeat(300 << 10)).expect_err("a long file");
    assert_eq!(long, "FILE is longer than 262144 bytes; shorten it");
}

/// The keys of a tool that are required.
const TOOL: &str = "name = 'search'\ndescription = 'Searches.'\nmethod = 'x/search'\n";

/// A pipe without a writer would block its reader.
#[test]
fn a_manifest_is_an_ordinary_file() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let path = folder.path().join(MANIFEST_FILE);
    mkfifoat(CWD, &path, Mode::RWXU).expect("a pipe");
    let error = Manifest::read(folder.path())
        .expect_err("a pipe")
        .to_string();
    assert!(error.contains("it is no ordinary file"), "{error}");
}

#[test]
fn tools_are_read() {
    let text = format!(
        "{LEAST}[[contributions.tools]]\n{TOOL}colour = 1\n[[contributions.tools]]\n\
         name = 'open-1_a'\ndescription = 'Opens.'\nmethod = 'open'\n\
         [contributions.tools.input_schema]\ntype = 'object'\nrequired = ['id']\n"
    );
    let manifest = read(&text).expect("a manifest");
    let expected = [
        PluginTool {
            name: "search".to_owned(),
            description: "Searches.".to_owned(),
            input_schema: json!({ "type": "object", "properties": {} }),
            method: "x/search".to_owned(),
        },
        PluginTool {
            name: "open-1_a".to_owned(),
            description: "Opens.".to_owned(),
            input_schema: json!({ "type": "object", "required": ["id"] }),
            method: "open".to_owned(),
        },
    ];
    assert_eq!(manifest.tools, expected);
    let warning =
        "plugin.toml: the key `contributions.tools.colour` is not known, and has no effect";
    assert_eq!(manifest.warnings, [warning]);
}

#[test]
fn a_hook_may_block_what_it_cannot_check() {
    let hook = |event: &str, more: &str| {
        let hook = format!("event = '{event}'\nmethod = 'a'\n{more}");
        read(&format!("{LEAST}[[contributions.hooks]]\n{hook}"))
    };
    for (more, blocks) in [
        ("", false),
        ("on_failure = 'ignore'", false),
        ("on_failure = 'block'", true),
    ] {
        let manifest = hook("PreToolUse", more).expect(more);
        assert_eq!(manifest.hooks[0].blocks_on_failure, blocks, "{more}");
        assert_eq!(manifest.warnings, [""; 0], "{more}");
    }
    for (event, more, expected) in [
        (
            "Stop",
            "on_failure = 'block'",
            "cannot be `block` for the event Stop",
        ),
        (
            "PreToolUse",
            "on_failure = true",
            "must be `ignore` or `block`",
        ),
    ] {
        let error = hook(event, more).expect_err(more);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn invalid_tools_are_rejected() {
    let tool = |lines: &str| format!("{LEAST}[[contributions.tools]]\n{lines}");
    let named = |name: &str| tool(&TOOL.replace("search'\nd", &format!("{name}'\nd")));
    for (text, expected) in [
        (named("a__b"), "`contributions.tools.name` is `a__b`"),
        (named("_a"), "`contributions.tools.name` is `_a`"),
        (named("a.b"), "`contributions.tools.name` is `a.b`"),
        (named(&"x".repeat(65)), "`contributions.tools.name` is `xx"),
        (
            tool("name = 'a'\nmethod = 'b'"),
            "`contributions.tools.description` must be a text",
        ),
        (
            tool("name = 'a'\ndescription = 'b'"),
            "`contributions.tools.method` is missing",
        ),
        (
            tool(&TOOL.replace("x/search", "plugin/shutdown")),
            "`contributions.tools.method` is `plugin/shutdown`",
        ),
        (
            tool(&format!("{TOOL}input_schema = {{ type = 'array' }}")),
            "`contributions.tools.input_schema` must be a JSON Schema",
        ),
        (
            tool(&format!("{TOOL}[[contributions.tools]]\n{TOOL}")),
            "`contributions.tools` has the name `search` twice",
        ),
        (
            format!("{LEAST}[contributions]\ntools = 5"),
            "`contributions.tools` must be a list of tables",
        ),
    ] {
        let error = read(&text).expect_err(&text);
        assert!(error.starts_with(&format!("FILE: {expected}")), "{error}");
    }
}

#[test]
fn folders_of_skills_are_inside_the_folder_of_the_plugin() {
    let skills = |value: &str| read(&format!("{LEAST}[contributions]\nskills = {value}\n"));
    let manifest = skills("['skills', 'more/of-them']").expect("a manifest");
    let expected = ["skills", "more/of-them"].map(str::to_owned);
    assert_eq!(manifest.skills, Some(expected.to_vec()));
    assert_eq!(manifest.warnings, Vec::<String>::new());
    for value in ["'skills'", "[1]", "{ a = 'b' }"] {
        let error = skills(value).expect_err(value);
        let expected = "FILE: `contributions.skills` must be a list of strings";
        assert!(error.starts_with(expected), "{error}");
    }
    for value in ["", "/etc", "../x", "a/../b", "./a", "a//b", "a/", "."] {
        let error = skills(&format!("['{value}']")).expect_err(value);
        let expected = format!("FILE: `contributions.skills` has the folder `{value}`; name");
        assert!(error.starts_with(&expected), "{error}");
    }
    let error = skills("['a', 'a']").expect_err("twice");
    let expected = "FILE: `contributions.skills` has the folder `a` twice; remove one of them";
    assert_eq!(error, expected);
}

#[test]
fn mcp_servers_are_read_under_the_name_of_the_plugin() {
    let servers = |sections: &str| read(&format!("{LEAST}{sections}"));
    let section = "[contributions.mcp_servers.files-1]\ncommand = './serve'\n";
    let manifest = servers(section).expect("a manifest");
    assert_eq!(manifest.warnings, Vec::<String>::new());
    let names: Vec<&str> = manifest
        .mcp_servers
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(names, ["org_name_files-1"]);
    let named = |name: &str| section.replace("files-1", name);
    let many: String = (0..9).map(|it| named(&it.to_string())).collect();
    for (sections, expected) in [
        (
            named("a_b"),
            "`contributions.mcp_servers` has the name `a_b`",
        ),
        (
            named("'a.b'"),
            "`contributions.mcp_servers` has the name `a.b`",
        ),
        (
            named(&"x".repeat(65)),
            "`contributions.mcp_servers` has the name `xx",
        ),
        (many, "`contributions.mcp_servers` has more than 8 servers"),
        (
            "[contributions]\nmcp_servers = []".to_owned(),
            "`contributions.mcp_servers` must be a table of tables",
        ),
        (
            "[contributions.mcp_servers]\na = 1".to_owned(),
            "`contributions.mcp_servers` must be a table of tables",
        ),
        (
            format!("{section}url = 'https://example.org'"),
            "`contributions.mcp_servers.files-1` cannot be used; a plugin cannot set `url`",
        ),
        (
            "[contributions.mcp_servers.a]".to_owned(),
            "`contributions.mcp_servers.a` cannot be used; it has neither `command` nor `url`",
        ),
    ] {
        let error = servers(&sections).expect_err(&sections);
        assert!(error.starts_with(&format!("FILE: {expected}")), "{error}");
    }
}
