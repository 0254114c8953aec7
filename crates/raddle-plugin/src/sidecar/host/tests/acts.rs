//! Acts of a plugin: which permission each needs, and when it ends.

use raddle_core::ports::{PluginAct, PluginActs, ToolResult};
use raddle_core::{CommandRun, FileChange, ItemBody, ItemStatus, NamedTool, Output, Patch};
use tokio::sync::mpsc;

use super::*;

/// Name under which the end of an act is reported.
const ENDED: &str = "ended";

/// A thread that reports each act, and runs it in this way.
struct FakeThread {
    acts: mpsc::UnboundedSender<(String, Value)>,
    run: ActRun,
}

#[derive(Clone, Copy)]
enum ActRun {
    /// The result is at once the JSON `{"ok": true}`.
    Answers,
    /// The act runs until it is stopped.
    Waits,
    /// The user is asked.
    Asks(&'static str),
}

impl PluginActs for FakeThread {
    fn run(&self, act: PluginAct) -> BoxFuture<'static, ToolResult> {
        let arguments = serde_json::from_str(&act.arguments).expect("JSON");
        let _ = self.acts.send((act.tool.clone(), arguments));
        let (run, acts) = (self.run, self.acts.clone());
        Box::pin(async move {
            let output = match run {
                ActRun::Answers => Output::text(r#"{"ok":true}"#),
                ActRun::Waits => {
                    act.stopped.await;
                    let _ = acts.send((ENDED.to_owned(), Value::Null));
                    Output::failure("stopped")
                }
                ActRun::Asks(what) => match act.approver.approve(what.to_owned()).await {
                    Ok(principal) => Output::text(json!({ "by": principal }).to_string()),
                    Err(why) => Output::failure(why.to_string()),
                },
            };
            let body = ItemBody::Tool(NamedTool { name: act.tool });
            ToolResult::new(ItemStatus::Completed, body, output)
        })
    }
}

/// A call of a thread that runs acts in this way, and the acts.
fn open_call(
    fixture: &HostFixture,
    run: ActRun,
    action: &'static str,
) -> (OpenCallGuard, mpsc::UnboundedReceiver<(String, Value)>) {
    let (acts, seen) = mpsc::unbounded_channel();
    let caller = CallUser {
        thread: ThreadId::mint(),
        questions: Arc::new(FakeUser {
            action,
            asked: AtomicUsize::new(0),
            last: Mutex::default(),
        }),
    };
    let thread = Arc::new(FakeThread { acts, run });
    let call = fixture.host.calls.add(Some(caller), Some(thread), None);
    (call, seen)
}

#[tokio::test]
async fn an_act_needs_a_permission_of_the_manifest_an_approval_and_a_thread() {
    let fixture = HostFixture::new();
    let (call, mut seen) = open_call(&fixture, ActRun::Answers, "accept");
    let act = |method| fixture.call(method, json!({ "path": "a", "call_id": null }));
    for (method, permission, is_listed) in [
        ("host/workspace_read", "workspace.read", true),
        ("host/workspace_list", "workspace.read", true),
        ("host/workspace_write", "workspace.write", true),
        ("host/command_run", "command.run", false),
    ] {
        let error = act(method).await.expect_err("not approved yet");
        let expected = match is_listed {
            true => "ask with host/request_approval",
            false => "plugin.toml does not list \"command.run\"",
        };
        assert!(error.contains(expected), "{method}: {error}");
        let answer = fixture.ask(permission).await;
        assert_eq!(answer, approved(is_listed), "{method}");
        let result = act(method).await;
        assert_eq!(result.is_ok(), is_listed, "{method}: {result:?}");
        if is_listed {
            assert_eq!(result, Ok(json!({ "ok": true })));
            let expected = (method.to_owned(), json!({ "path": "a" }));
            assert_eq!(seen.recv().await, Some(expected));
            let store = &fixture.host.permissions;
            store.revoke(Some(permission)).expect("a file");
        }
    }
    assert!(seen.is_empty());
    assert_eq!(fixture.ask("workspace.read").await, approved(true));
    let error = fixture.call("host/workspace_read", json!([])).await;
    assert_eq!(error, Err("the params must be an object".to_owned()));
    drop(call);
    let error = act("host/workspace_read").await.expect_err("no call");
    assert!(error.contains("no call of the plugin is open"), "{error}");
    // A hook, or a call of a client.
    let call = fixture.host.calls.add(None, None, None);
    let error = act("host/workspace_read").await.expect_err("no thread");
    assert!(error.contains("no turn of a thread made"), "{error}");
    drop(call);
    let (_call, _seen) = open_call(&fixture, ActRun::Answers, "accept");
    act("host/workspace_read").await.expect("a thread again");
}

#[tokio::test]
async fn an_act_ends_with_its_call() {
    let fixture = HostFixture::new();
    let (call, mut seen) = open_call(&fixture, ActRun::Waits, "accept");
    assert_eq!(fixture.ask("workspace.read").await, approved(true));
    let fixture = Arc::new(fixture);
    let host = fixture.clone();
    let act = async move { host.call("host/workspace_read", json!({})).await };
    let act = tokio::spawn(act);
    seen.recv().await.expect("an act");
    call.end().await;
    // It has ended before the call has.
    let ended = seen.try_recv().map(|(name, _)| name);
    assert_eq!(ended, Ok(ENDED.to_owned()));
    let outcome = act.await.expect("no panic");
    assert_eq!(outcome, Err("stopped".to_owned()));
    let error = fixture.call("host/workspace_read", json!({})).await;
    assert!(error.is_err_and(|it| it.contains("no call of the plugin is open")));
}

#[tokio::test]
async fn an_act_asks_the_user_of_its_call_and_shows_all_of_it() {
    for (action, what, expected) in [
        (
            "accept",
            "asks for the permission x",
            Ok(json!({ "by": "me" })),
        ),
        (
            "decline",
            "asks for the permission x",
            Err("the user did not approve it"),
        ),
        (
            "accept",
            "asks for the permission \u{202e}x",
            Err("it has characters that a question cannot show"),
        ),
    ] {
        let fixture = HostFixture::new();
        let (_call, _seen) = open_call(&fixture, ActRun::Asks(what), "accept");
        assert_eq!(fixture.ask("workspace.read").await, approved(true));
        drop(_call);
        let (_call, _seen) = open_call(&fixture, ActRun::Asks(what), action);
        let result = fixture.call("host/workspace_read", json!({})).await;
        assert_eq!(result, expected.map_err(str::to_owned), "{action} {what:?}");
    }
    let fixture = HostFixture::new();
    let long: &'static str =
        Box::leak(format!("asks for the permission {}", "x".repeat(5_000)).into());
    let (_call, _seen) = open_call(&fixture, ActRun::Asks(long), "accept");
    assert_eq!(fixture.ask("workspace.read").await, approved(true));
    let result = fixture.call("host/workspace_read", json!({})).await;
    let error = result.expect_err("too long to show");
    assert!(error.contains("more than 4096 bytes"), "{error}");
}

#[test]
fn a_result_has_the_form_of_its_method() {
    let command = |exit_code, duration_ms, status| {
        let body = ItemBody::Command(CommandRun {
            exit_code,
            duration_ms,
            printed: Some("out".to_owned()),
            ..CommandRun::default()
        });
        ToolResult::new(status, body, Output::failure("why"))
    };
    let patch = |changes| {
        let body = ItemBody::Patch(Patch { changes });
        ToolResult::new(ItemStatus::Completed, body, Output::text("done"))
    };
    let change = FileChange {
        path: "a".to_owned(),
        kind: raddle_core::ChangeKind::Add {},
        diff: "x".to_owned(),
    };
    let ran = |code: Value| json!({ "exit_code": code, "output": "out", "duration_ms": 5 });
    for (result, expected) in [
        (
            command(Some(3), Some(5), ItemStatus::Failed),
            Ok(ran(json!(3))),
        ),
        (
            command(None, Some(5), ItemStatus::Failed),
            Ok(ran(Value::Null)),
        ),
        (command(None, Some(5), ItemStatus::Interrupted), Err("why")),
        // It was not started.
        (command(None, None, ItemStatus::Failed), Err("why")),
        (patch(vec![change]), Ok(json!({ "changed": true }))),
        (patch(Vec::new()), Ok(json!({ "changed": false }))),
    ] {
        let outcome = crate::sidecar::host::acts::outcome("host/x", result);
        let outcome = outcome.map_err(|it| it.message.into_owned());
        assert_eq!(outcome, expected.map_err(str::to_owned));
    }
}
