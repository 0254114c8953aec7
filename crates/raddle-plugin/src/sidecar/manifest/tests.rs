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
