//! Members of requests that bound the agent or a command: each is enforced or rejected, never
//! accepted and ignored.
//!
//! [`TABLE`] names every member of the requests that carry such bounds. So a new member fails
//! `each_member_is_in_the_table` until its row says whether it bounds something, and how that is
//! enforced.

mod table;

use std::collections::BTreeSet;
use std::sync::Arc;

use raddle_agent::{FixedRules, NoTools, NoWebhook, SoleNode, Threads};
use raddle_core::Timestamp;
use raddle_core::policy::{ManagedLimits, Policy, SandboxKind};
use raddle_protocol::METHODS;
use raddle_protocol::export::json_schema;
use raddle_server::{AgentDeps, Server};
use raddle_store::MemoryJournal;
use serde_json::{Value, json};

use self::table::Expectation::{Done, Refused, ShownBy, Shows};
use self::table::{BoundMember, DUPLICATE_BOUNDS, Probe, READ_ONLY, REPLACED_MEMBERS, TABLE};
use crate::client::{TestClient, answer};
use crate::player::Harness;

/// Returns the names of a request's members.
fn members(method: &str) -> BTreeSet<String> {
    let row = METHODS.iter().find(|it| it.name == method).expect(method);
    let Some(params) = row.params else {
        return BTreeSet::new();
    };
    let files = json_schema(true);
    let file = files.iter().find(|it| {
        let name = it.path.rsplit('/').next().unwrap_or_default();
        name.strip_suffix(".json") == Some(params)
    });
    let schema: Value = serde_json::from_str(&file.expect(params).text).expect("JSON");
    let members = schema["properties"].as_object();
    members
        .into_iter()
        .flat_map(|it| it.keys().cloned())
        .collect()
}

/// A member without a row fails here: say whether it bounds something, and how that is enforced.
#[test]
fn each_member_is_in_the_table() {
    for request in TABLE {
        let free_members = request.free.split_whitespace();
        let bounds = request.bounds.iter().map(|it| it.member);
        let named: Vec<String> = free_members.chain(bounds).map(str::to_owned).collect();
        let distinct: BTreeSet<String> = named.iter().cloned().collect();
        assert_eq!(
            distinct.len(),
            named.len(),
            "{} names one twice",
            request.method
        );
        assert_eq!(distinct, members(request.method), "{}", request.method);
        for bound in request.bounds {
            assert!(
                !bound.probes.is_empty(),
                "{} {}",
                request.method,
                bound.member
            );
        }
    }
    // A request with a member of such a name must have a row.
    let bounds: BTreeSet<&str> = TABLE
        .iter()
        .flat_map(|it| it.bounds)
        .map(|it| it.member)
        // Names that many requests use for other things.
        .filter(|it| !["cwd", "config", "budget", "env"].contains(it))
        .collect();
    for row in METHODS {
        let bounding = members(row.name)
            .into_iter()
            .find(|it| bounds.contains(it.as_str()));
        let is_listed = TABLE.iter().any(|it| it.method == row.name)
            // A server request about where a turn of its thread runs; the client answers it.
            || !crate::bounds::is_served(row.name);
        assert!(
            bounding.is_none() || is_listed,
            "{} has {bounding:?} and no row",
            row.name
        );
    }
}

/// Whether the server has the method, or only its types.
fn is_served(method: &str) -> bool {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/src/routes.rs");
    let page = std::fs::read_to_string(page).expect("the routes");
    page.contains(&format!("\"{method}\" =>"))
}

const CONFIG_FILE: &str = "sandbox_mode = 'workspace-write'\n\
    [permissions.mine]\nextends = ':read-only'\ndescription = 'Reads, and asks others.'\n\
    [permissions.mine.network]\nenabled = true\n";

/// Returns complete params for a request with this member.
fn complete_params(method: &str, member: &str, value: Value, thread: &Value) -> Value {
    let mut params = match method {
        "command/exec" => json!({
            "command": ["true"],
            "cwd": "/",
            "sandboxPolicy": {"type": "dangerFullAccess"},
        }),
        "process/spawn" => json!({"command": ["true"], "processHandle": "p", "cwd": "/"}),
        "thread/shellCommand" => json!({"threadId": thread, "command": "true"}),
        "thread/goal/set" => json!({"threadId": thread, "objective": "it"}),
        "thread/start" => json!({}),
        "turn/start" => json!({"threadId": thread, "input": []}),
        "turn/settings/update" => json!({"threadId": thread, "turnId": "none"}),
        "turn/steer" => json!({"threadId": thread, "input": [], "expectedTurnId": thread}),
        _ => json!({"threadId": thread}),
    };
    if member == "permissionProfile"
        && let Some(params) = params.as_object_mut()
    {
        params.remove("sandboxPolicy");
    }
    params[member] = value;
    params
}

/// Whether a value contains everything that is expected.
fn contains(actual: &Value, expected: &Value) -> bool {
    match (actual, expected) {
        (Value::Object(actual), Value::Object(expected)) => expected
            .iter()
            .all(|(name, expected)| contains(actual.get(name).unwrap_or(&Value::Null), expected)),
        (actual, expected) => actual == expected,
    }
}

/// Sends a request to a fresh server, and returns the thread's settings then.
async fn probe(method: &str, member: &str, value: Value) -> Result<Value, Value> {
    let harness = Harness::new();
    std::fs::write(harness.config(), CONFIG_FILE).expect("a configuration");
    let mut server = harness.open();
    let mut client = TestClient::connect_experimental(&mut server).await;
    let response = answer(
        &mut client,
        "thread/start",
        json!({"cwd": harness.path("")}),
    )
    .await?;
    let thread = response["thread"]["id"].clone();
    if method == "thread/resume" {
        // By the contract, a thread with a subscriber keeps its settings; the response shows them.
        answer(
            &mut client,
            "thread/unsubscribe",
            json!({"threadId": thread}),
        )
        .await?;
    }
    let params = complete_params(method, member, value, &thread);
    let result = answer(&mut client, method, params).await?;
    match method {
        // These respond with the settings in force.
        "thread/start" | "thread/fork" | "thread/resume" => Ok(result),
        "command/exec" | "process/spawn" | "thread/shellCommand" => Ok(result),
        _ => answer(&mut client, "thread/resume", json!({"threadId": thread})).await,
    }
}

/// Whether a file of the repository contains this text.
fn file_contains(file: &str, text: &str) -> bool {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(file)).is_ok_and(|it| it.contains(text))
}

#[tokio::test]
async fn bounds_are_enforced_or_rejected() {
    let mut failures = Vec::new();
    for request in TABLE {
        for BoundMember {
            member,
            probes,
            shared,
        } in request.bounds
        {
            for Probe(value, expectation) in probes.iter().chain(*shared) {
                let requested = serde_json::from_str(value).expect(value);
                let outcome = probe(request.method, member, requested).await;
                let is_right = match (&outcome, expectation) {
                    (Ok(settings), Shows(expected)) => {
                        contains(settings, &serde_json::from_str(expected).expect(expected))
                    }
                    (Err(error), Refused(part)) => {
                        error["code"] == -32600 && error["message"].to_string().contains(part)
                    }
                    (Ok(_), Done) => true,
                    (Ok(_), ShownBy(file, text)) => file_contains(file, text),
                    _ => false,
                };
                if !is_right {
                    let shown = outcome.map(|it| {
                        json!([
                            it["sandbox"],
                            it["activePermissionProfile"],
                            it["approvalPolicy"],
                            it["approvalsReviewer"],
                            it["cwd"],
                            it["runtimeWorkspaceRoots"],
                        ])
                    });
                    failures.push(format!("{} {member}: {value}: {shown:?}", request.method));
                }
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} wrong:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[tokio::test]
async fn a_bound_that_a_request_does_not_have_is_rejected() {
    for (method, member, replacement) in REPLACED_MEMBERS {
        let refused = probe(method, member, json!(":read-only")).await;
        let error = refused.expect_err(&format!("{method} took {member}"));
        let message = error["message"].as_str().unwrap_or_default().to_owned();
        assert!(
            message.contains(member) && message.contains(replacement),
            "{method}: {error}"
        );
        // A null member is ignored. There is no turn to steer.
        if *method == "turn/steer" {
            continue;
        }
        let outcome = probe(method, member, Value::Null).await;
        assert!(outcome.is_ok(), "{method} {member}: {outcome:?}");
    }
}

/// As in the reference.
#[tokio::test]
async fn a_profile_and_a_sandbox_exclude_each_other() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect_experimental(&mut server).await;
    let response = answer(&mut client, "thread/start", json!({})).await;
    let thread = response.expect("a thread")["thread"]["id"].clone();
    let policy = json!({"type": "readOnly"});
    for (method, member, value) in [
        ("thread/start", "sandbox", json!("read-only")),
        ("thread/resume", "sandbox", json!("read-only")),
        ("thread/fork", "sandbox", json!("read-only")),
        ("thread/settings/update", "sandboxPolicy", policy.clone()),
        ("turn/start", "sandboxPolicy", policy),
    ] {
        let mut params = complete_params(method, member, value, &thread);
        params["permissions"] = json!(":read-only");
        let error = answer(&mut client, method, params).await.expect_err(method);
        let expected = format!("`permissions` cannot be combined with `{member}`");
        assert_eq!(error["message"], expected, "{method}");
    }
}

/// The wider of two values must not win silently.
#[tokio::test]
async fn two_values_for_one_bound_must_agree() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect_experimental(&mut server).await;
    let response = answer(&mut client, "thread/start", json!({})).await;
    let thread = response.expect("a thread")["thread"]["id"].clone();
    for method in ["thread/start", "thread/resume", "thread/fork"] {
        for [member, value, key, same, other] in DUPLICATE_BOUNDS {
            let mut params = complete_params(method, member, json!(value), &thread);
            params["config"] = json!({*key: same});
            let outcome = answer(&mut client, method, params.clone()).await;
            assert!(outcome.is_ok(), "{method} {member} {key}: {outcome:?}");
            params["config"] = json!({*key: other});
            let error = answer(&mut client, method, params).await.expect_err(member);
            let expected = format!(
                "`{member}` and `config.{key}` bound the same and differ; send one of them"
            );
            assert_eq!(error["message"], expected, "{method}");
        }
        let mut params = complete_params(method, "permissions", json!(":workspace"), &thread);
        params["config"] = json!({"sandbox_workspace_write.exclude_slash_tmp": true});
        let error = answer(&mut client, method, params).await.expect_err(method);
        let message = error["message"].to_string();
        assert!(message.contains("sandbox_workspace_write"), "{error}");
    }
    for method in ["thread/start", "turn/start"] {
        for (member, value, environment_value) in [
            ("cwd", json!("/etc"), json!("/usr")),
            ("runtimeWorkspaceRoots", json!(["/etc"]), json!(["/usr"])),
        ] {
            let mut params = complete_params(method, member, value, &thread);
            params["environments"] = json!([{"environmentId": "local", "cwd": "/usr"}]);
            params["environments"][0][member] = environment_value;
            let error = answer(&mut client, method, params).await.expect_err(member);
            let message = error["message"].to_string();
            let expected = format!("`{member}` and `environments[0].{member}`");
            assert!(message.contains(&expected), "{method}: {error}");
        }
    }
}

/// Threads of an operator that allows reading only.
fn read_only_threads(deps: AgentDeps) -> Threads {
    let limits = ManagedLimits {
        sandboxes: Some(vec![SandboxKind::ReadOnly]),
        network_off: true,
        ..ManagedLimits::default()
    };
    let policy = Policy {
        managed: limits,
        ..Policy::default()
    };
    let memory = Arc::new(MemoryJournal::new());
    Threads::new(raddle_agent::Options {
        journal: memory.clone(),
        pages: memory.clone(),
        blobs: memory.clone(),
        memory: memory.clone(),
        memory_pages: memory.clone(),
        memory_blobs: memory,
        model: crate::script::model(&[]),
        tools: Arc::new(NoTools),
        rules: Arc::new(FixedRules(Arc::new(policy))),
        webhook: Arc::new(NoWebhook),
        hooks: Arc::new(raddle_core::ports::NoHooks),
        skills: deps.skills,
        plugins: Arc::new(raddle_core::ports::NoPlugins),
        clock: || Timestamp(1_700_000_000_000),
        node: "test".to_owned(),
        liveness: Arc::new(SoleNode),
        recovery: raddle_core::Recovery::Continue,
    })
}

/// A profile that the operator does not allow is listed as such, and cannot be chosen.
#[tokio::test]
async fn a_profile_that_the_operator_does_not_allow_is_refused() {
    let harness = Harness::new();
    std::fs::write(harness.config(), CONFIG_FILE).expect("a configuration");
    let mut server = Server::open(harness.options(), read_only_threads).expect("a server");
    let mut client = TestClient::connect_experimental(&mut server).await;
    let listed = answer(&mut client, "permissionProfile/list", json!({})).await;
    let listed = listed.expect("a list")["data"].take();
    let allowed = listed.as_array().expect("profiles").iter();
    let allowed: Vec<(String, bool)> = allowed
        .map(|it| (it["id"].as_str().unwrap().to_owned(), it["allowed"] == true))
        .collect();
    let expected = [
        (":read-only", true),
        (":workspace", false),
        (":danger-full-access", false),
        ("mine", false),
    ];
    assert_eq!(
        allowed,
        expected.map(|(id, is_allowed)| (id.to_owned(), is_allowed))
    );
    let response = answer(
        &mut client,
        "thread/start",
        json!({"permissions": ":read-only"}),
    )
    .await;
    let thread = response.expect("a thread")["thread"]["id"].clone();
    for method in [
        "thread/start",
        "thread/resume",
        "thread/fork",
        "thread/settings/update",
        "turn/start",
        "command/exec",
    ] {
        let member = match method {
            "command/exec" => "permissionProfile",
            _ => "permissions",
        };
        for (id, _) in allowed.iter().filter(|it| !it.1) {
            let params = complete_params(method, member, json!(id), &thread);
            let error = answer(&mut client, method, params).await.expect_err(id);
            let info = &error["data"]["errorInfo"];
            assert_eq!(
                info, "permission_profile_not_allowed",
                "{method} {id}: {error}"
            );
        }
    }
    let resumed = answer(&mut client, "thread/resume", json!({"threadId": thread})).await;
    let resumed = resumed.expect("the thread");
    assert!(
        contains(&resumed, &serde_json::from_str(READ_ONLY).unwrap()),
        "{resumed}"
    );
}
