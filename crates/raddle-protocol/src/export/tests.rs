//! Tests of the generated files, from the view of their readers.

use std::collections::{BTreeMap, BTreeSet};

use schemars::generate::Contract;
use serde_json::Value;

use super::catalog::{Catalog, MARK, View, is_marked, members};
use super::{File, json_schema, reference, typescript};
use crate::{METHODS, Stability};

fn by_path(files: Vec<File>) -> BTreeMap<String, String> {
    let count = files.len();
    let files: BTreeMap<_, _> = files.into_iter().map(|it| (it.path, it.text)).collect();
    assert_eq!(files.len(), count, "two files have the same path");
    files
}

fn schemas(experimental: bool) -> BTreeMap<String, Value> {
    by_path(json_schema(experimental))
        .into_iter()
        .map(|(path, text)| (path, serde_json::from_str(&text).expect("JSON")))
        .collect()
}

/// Returns the methods named by the variants of a union.
fn methods(union: &Value) -> BTreeSet<&str> {
    let arms = union["oneOf"].as_array().expect("a union");
    arms.iter()
        .filter_map(|arm| arm["properties"]["method"]["enum"][0].as_str())
        .collect()
}

#[test]
fn schemas_are_where_the_reference_has_them() {
    let schemas = schemas(true);
    for path in [
        "ClientNotification.json",
        "ClientRequest.json",
        "CommandExecutionRequestApprovalParams.json",
        "CommandExecutionRequestApprovalResponse.json",
        "FuzzyFileSearchResponse.json",
        "FuzzyFileSearchSessionUpdatedNotification.json",
        "JSONRPCError.json",
        "JSONRPCErrorError.json",
        "JSONRPCMessage.json",
        "JSONRPCNotification.json",
        "JSONRPCRequest.json",
        "JSONRPCResponse.json",
        "RequestId.json",
        "ServerNotification.json",
        "ServerRequest.json",
        "codex_app_server_protocol.schemas.json",
        "codex_app_server_protocol.v2.schemas.json",
        "v1/InitializeParams.json",
        "v1/InitializeResponse.json",
        "v2/ThreadForkParams.json",
        "v2/ThreadResumeParams.json",
        "v2/ThreadSettingsUpdateParams.json",
        "v2/ThreadStartedNotification.json",
        "v2/TurnStartParams.json",
        "v2/TurnStartResponse.json",
    ] {
        assert!(schemas.contains_key(path), "{path} is missing");
    }
    assert!(!schemas.contains_key("v2/UserInput.json"), "only a part");
}

#[test]
fn a_schema_is_complete_in_itself() {
    let schemas = schemas(true);
    let params = &schemas["v2/TurnStartParams.json"];
    assert_eq!(params["$schema"], "http://json-schema.org/draft-07/schema#");
    assert_eq!(params["title"], "TurnStartParams");
    assert!(params["definitions"]["UserInput"]["oneOf"].is_array());
    assert!(params["definitions"].get("Turn").is_none(), "not reachable");
    let model = &params["properties"]["model"];
    assert_eq!(model["type"], serde_json::json!(["string", "null"]));

    let bundle = &schemas["codex_app_server_protocol.schemas.json"]["definitions"];
    assert_eq!(bundle["v2"]["TurnStartParams"]["title"], "TurnStartParams");
    assert_eq!(bundle["InitializeParams"]["title"], "InitializeParams");
    assert!(bundle.get("TurnStartParams").is_none());
}

#[test]
fn every_reference_of_a_schema_resolves_inside_its_file() {
    fn check(path: &str, file: &Value, schema: &Value) -> usize {
        match schema {
            Value::Object(object) => {
                let mut count = 0;
                if let Some(Value::String(target)) = object.get("$ref") {
                    let pointer = target.strip_prefix('#').expect("inside the file");
                    assert!(file.pointer(pointer).is_some(), "{path}: {target}");
                    count += 1;
                }
                let below = object.values().map(|it| check(path, file, it));
                count + below.sum::<usize>()
            }
            Value::Array(array) => array.iter().map(|it| check(path, file, it)).sum(),
            _ => 0,
        }
    }
    for experimental in [false, true] {
        let schemas = schemas(experimental);
        let count: usize = schemas.iter().map(|(path, it)| check(path, it, it)).sum();
        assert!(count > 1_000, "only {count} references were seen");
    }
}

#[test]
fn schema_keys_are_sorted_and_marks_are_removed() {
    for experimental in [false, true] {
        for (path, text) in by_path(json_schema(experimental)) {
            let mut schema: Value = serde_json::from_str(&text).expect("JSON");
            schema.sort_all_objects();
            assert_eq!(text, format!("{schema:#}\n"), "{path}");
            assert!(!text.contains(MARK), "{path}");
        }
    }
}

#[test]
fn experimental_parts_are_not_in_the_stable_schema() {
    let (stable, all) = (schemas(false), schemas(true));
    for row in METHODS {
        let is_stable = row.stability == Stability::Stable;
        let listed = methods(&stable["ClientRequest.json"]).contains(row.name);
        assert_eq!(listed, is_stable, "{}", row.name);
        assert!(methods(&all["ClientRequest.json"]).contains(row.name));
    }
    for path in [
        "v2/ThreadSettingsUpdateParams.json",
        "v2/ProcessSpawnResponse.json",
    ] {
        assert!(
            all.contains_key(path) && !stable.contains_key(path),
            "{path}"
        );
    }

    let properties =
        |of: &BTreeMap<String, Value>| of["v2/TurnStartParams.json"]["properties"].clone();
    assert!(properties(&all).get("permissions").is_some());
    assert!(properties(&stable).get("permissions").is_none());
    assert!(properties(&stable).get("model").is_some());
    let definitions = &stable["v2/TurnStartParams.json"]["definitions"];
    assert!(
        definitions.get("CollaborationMode").is_none(),
        "reachable no more"
    );
}

/// The gate rejects members by the names in the table; the schema omits them by the marks on the
/// types.
#[test]
fn gate_and_schema_agree_on_experimental_members() {
    let catalog = Catalog::new(Contract::Deserialize, View::Marked);
    // The gate rejects an experimental method as a whole, so its params need no names.
    for row in METHODS
        .iter()
        .filter(|row| row.stability == Stability::Stable)
    {
        let schema = row.params.and_then(|name| catalog.schema(name).as_object());
        let members = schema.map(members).unwrap_or_default();
        let marked = members.iter().filter(|(_, member)| is_marked(member));
        let marked: BTreeSet<&str> = marked.map(|(name, _)| *name).collect();
        let gated: BTreeSet<&str> = row.gated.iter().copied().collect();
        assert_eq!(gated, marked, "{}", row.name);
    }
}

#[test]
fn every_import_and_export_of_the_typescript_resolves() {
    for experimental in [false, true] {
        let files = by_path(typescript(experimental));
        let mut import_count = 0;
        for (path, text) in &files {
            for line in text
                .lines()
                .filter(|line| line.contains(" from \"./") || line.contains(" from \"../"))
            {
                let target = line.split('"').nth(1).expect("a quoted path");
                let target = resolve(path, target);
                let candidates = [format!("{target}.ts"), format!("{target}/index.ts")];
                assert!(
                    candidates.iter().any(|it| files.contains_key(it)),
                    "{path}: {line}"
                );
                import_count += 1;
            }
        }
        assert!(import_count > 500, "only {import_count} lines were seen");
    }
}

#[test]
fn typescript_marks_optional_members() {
    let files = by_path(typescript(false));
    let params = &files["v2/TurnStartParams.ts"];
    assert!(params.starts_with("// Generated by `raddle app-server generate-ts`."));
    assert!(params.contains("\n  threadId: string;\n"), "{params}");
    assert!(params.contains("\n  model?: string | null;\n"), "{params}");
    let result = &files["v2/ThreadListResponse.ts"];
    assert!(
        result.contains("\n  nextCursor: string | null;\n"),
        "{result}"
    );
    assert!(files["index.ts"].contains("export * as v2 from \"./v2\";"));
    assert!(files["v2/index.ts"].contains("{ TurnStartParams }"));
}

#[test]
fn every_row_has_a_page() {
    let files = by_path(reference());
    for path in [
        "README.md",
        "methods/command/exec.md",
        "methods/command/exec/write.md",
        "methods/thread/start.md",
        "notifications/turn/completed.md",
        "requests/item/tool/call.md",
        "types/UserInput.md",
    ] {
        assert!(files.contains_key(path), "{path} is missing");
    }
    let page = &files["methods/turn/start.md"];
    assert!(
        page.contains("- Lane: exclusive, by thread (`threadId`)\n"),
        "{page}"
    );
    for fact in [
        "- Observers: are rejected\n",
        "- Retry: safe with the same `clientRequestId`\n",
        "- Served by: the node that owns the thread; if the thread is not loaded, ",
    ] {
        assert!(page.contains(fact), "{page}");
    }
    assert!(
        page.contains("| `threadId` | string | required | "),
        "{page}"
    );
    assert!(
        page.contains("| `model` | string | optional, may be null | "),
        "{page}"
    );
    assert!(
        page.contains("| optional, may be null, **experimental** | "),
        "{page}"
    );
    let order = [
        "| `threadId` ",
        "| `cwd` ",
        "| `summary` ",
        "<details>",
        "| `turnTrigger` ",
    ];
    let positions: Vec<_> = order.iter().map(|it| page.find(it)).collect();
    assert!(positions.is_sorted() && positions[0].is_some(), "{page}");
}

#[test]
fn every_link_of_the_reference_resolves() {
    let files = by_path(reference());
    let mut link_count = 0;
    for (path, text) in &files {
        for (_, rest) in text
            .match_indices("](")
            .map(|(at, _)| text.split_at(at + 2))
        {
            let target = rest.split(')').next().expect("a link ends");
            match target.strip_prefix('#') {
                Some(anchor) => {
                    let mut headings = text.lines().filter_map(|line| line.strip_prefix("### "));
                    assert!(
                        headings.any(|it| it.to_lowercase() == anchor),
                        "{path}: {target}"
                    );
                }
                None => assert!(
                    files.contains_key(&resolve(path, target)),
                    "{path}: {target}"
                ),
            }
            link_count += 1;
        }
    }
    assert!(link_count > 300, "only {link_count} links were seen");
}

/// Resolves a relative path that occurs in the file `from`.
fn resolve(from: &str, target: &str) -> String {
    let mut steps: Vec<&str> = from.split('/').collect();
    steps.pop();
    for step in target.split('/') {
        match step {
            "." => {}
            ".." => assert!(steps.pop().is_some(), "{from}: {target} leaves the folder"),
            step => steps.push(step),
        }
    }
    steps.join("/")
}
