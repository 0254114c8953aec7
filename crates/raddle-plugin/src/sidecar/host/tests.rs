mod acts;
mod small_methods;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use raddle_core::ports::QuestionSink;
use raddle_core::{Ask, AskElicitation, PluginPermission, RequestAnswer, Resolution, ThreadId};
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::mcp::CallUser;
use crate::sidecar::open_calls::OpenCallGuard;

/// A user that answers every question with this action.
struct FakeUser {
    action: &'static str,
    asked: AtomicUsize,
    last: Mutex<Option<AskElicitation>>,
}

impl QuestionSink for FakeUser {
    fn ask(&self, ask: Ask) -> BoxFuture<'static, Resolution> {
        let Ask::Elicitation(question) = ask else {
            panic!("another question");
        };
        assert_eq!(question.server, "org.example");
        let message = question.body["message"].as_str().expect("a message");
        let beginning = "The plugin org.example 1 asks for the permission ";
        assert!(message.starts_with(beginning), "{message}");
        self.asked.fetch_add(1, Ordering::Relaxed);
        *self.last.lock().expect("a question") = Some(question);
        let body = json!({ "action": self.action });
        Box::pin(std::future::ready(Resolution::Answered {
            by: "me".to_owned(),
            answer: Box::new(RequestAnswer::Elicitation { body }),
        }))
    }
}

/// The host of a plugin, and the folder of both.
struct HostFixture {
    home: TempDir,
    host: PluginHost,
}

impl HostFixture {
    fn new() -> Self {
        Self::of(TempDir::new().expect("a home"), "")
    }

    /// Creates the host of a plugin whose manifest ends with this text.
    fn of(home: TempDir, more: &str) -> Self {
        let folder = home.path().join("plugin");
        std::fs::create_dir_all(&folder).expect("a folder");
        let permissions = "permissions = ['workspace.read', 'workspace.write', 'secrets:PATH', \
                           'secrets:RADDLE_NONE']";
        let manifest =
            format!("id = 'org.example'\nversion = '1'\nentrypoint = ['x']\n{permissions}\n{more}");
        std::fs::write(folder.join("plugin.toml"), manifest).expect("a manifest");
        let plugin = InspectedPlugin::read(&folder).expect("a plugin");
        let log = LogFile::open(home.path().join("log"));
        let host = PluginHost::new(&plugin, log, home.path());
        Self { home, host }
    }

    /// Opens a call of a new thread, whose user answers questions with this action.
    fn open_call(&self, action: &'static str) -> (Arc<FakeUser>, OpenCallGuard) {
        let user = Arc::new(FakeUser {
            action,
            asked: AtomicUsize::new(0),
            last: Mutex::default(),
        });
        let caller = CallUser {
            thread: ThreadId::mint(),
            questions: user.clone(),
        };
        let call = self.host.calls.add(Some(caller), None, None);
        (user, call)
    }

    /// Waits until the log contains a text, and returns the log.
    async fn log_with(&self, text: &str) -> String {
        let path = self.home.path().join("log");
        let read = async {
            loop {
                let log = std::fs::read_to_string(&path).unwrap_or_default();
                match log.contains(text) {
                    true => return log,
                    false => tokio::task::yield_now().await,
                }
            }
        };
        let log = tokio::time::timeout(std::time::Duration::from_secs(60), read).await;
        log.expect("a log with the text")
    }

    async fn call(&self, method: &str, params: Value) -> Result<Value, String> {
        let answer = self.host.call(method, params).await;
        answer.map_err(|error| error.message.into_owned())
    }

    async fn ask(&self, permission: &str) -> Result<Value, String> {
        let params = json!({ "permission": permission });
        self.call("host/request_approval", params).await
    }
}

fn approved(it: bool) -> Result<Value, String> {
    Ok(json!({ "approved": it }))
}

#[tokio::test]
async fn a_permission_is_asked_in_a_call_and_only_an_approval_is_remembered() {
    for (action, is_approved, questions) in [("accept", true, 1), ("decline", false, 3)] {
        let fixture = HostFixture::new();
        let error = fixture.ask("workspace.read").await;
        let expected = "the user is not asked: no call of the plugin is open; call the host in the \
                        middle of a call";
        assert_eq!(error, Err(expected.to_owned()));
        let (user, call) = fixture.open_call(action);
        for _ in 0..3 {
            let answer = fixture.ask("workspace.read").await;
            assert_eq!(answer, approved(is_approved), "{action}");
        }
        // The manifest does not list it.
        assert_eq!(fixture.ask("command.run").await, approved(false));
        assert_eq!(user.asked.load(Ordering::Relaxed), questions, "{action}");
        drop(call);
        let later = fixture.ask("workspace.read").await;
        assert_eq!(later.is_ok(), is_approved, "{action}");
    }
}

#[tokio::test]
async fn an_approval_outlives_the_host_until_the_files_change_or_it_is_revoked() {
    let fixture = HostFixture::new();
    let (_, call) = fixture.open_call("accept");
    assert_eq!(fixture.ask("workspace.read").await, approved(true));
    drop(call);
    // The server is started again.
    let fixture = HostFixture::of(fixture.home, "");
    assert_eq!(fixture.ask("workspace.read").await, approved(true));
    let hash = fixture.host.hash.clone();
    let stored = fixture.host.permissions.approved(&hash).expect("a file");
    assert_eq!(stored["workspace.read"].by, "me");
    let changed = HostFixture::of(fixture.home, "# changed\n");
    changed
        .ask("workspace.read")
        .await
        .expect_err("asked again");
    let fixture = HostFixture::of(changed.home, "");
    assert_eq!(fixture.ask("workspace.read").await, approved(true));
    let store = PermissionStore::of(fixture.home.path(), "org.example");
    store.revoke(Some("workspace.read")).expect("a file");
    fixture.ask("workspace.read").await.expect_err("revoked");
}

#[tokio::test]
async fn an_approval_of_a_plugin_that_was_removed_is_not_stored() {
    let fixture = HostFixture::new();
    let (user, _call) = fixture.open_call("accept");
    // The user removes it while the question is open.
    fixture.host.stop();
    let error = fixture.ask("workspace.read").await.expect_err("stopped");
    assert!(error.contains("changed, disabled or removed"), "{error}");
    assert_eq!(user.asked.load(Ordering::Relaxed), 1);
    let hash = fixture.host.hash.clone();
    let stored = fixture.host.permissions.approved(&hash).expect("a file");
    assert!(stored.is_empty());
}

/// The question of a call that was lost is the one that the plugin asked: its text, for its files.
#[tokio::test]
async fn an_answer_to_a_lost_call_approves_only_the_question_of_the_plugin() {
    let fixture = HostFixture::new();
    let (user, _call) = fixture.open_call("decline");
    assert_eq!(fixture.ask("workspace.read").await, approved(false));
    let asked = user.last.lock().expect("a question").clone();
    let asked = asked.expect("a question");
    let permission = asked.permission.clone().expect("a permission");
    let with = |permission: Option<PluginPermission>, body: &Value| AskElicitation {
        permission,
        body: body.clone(),
        ..asked.clone()
    };
    let of = |hash: &str, name: &str| {
        Some(PluginPermission {
            hash: hash.to_owned(),
            name: name.to_owned(),
            ..permission.clone()
        })
    };
    for (what, ask, is_approved) in [
        ("no permission", with(None, &asked.body), false),
        (
            "other files",
            with(of("sha256:0", "workspace.read"), &asked.body),
            false,
        ),
        (
            "another permission than the text says",
            with(of(&permission.hash, "workspace.write"), &asked.body),
            false,
        ),
        (
            "another text",
            with(
                Some(permission.clone()),
                &json!({"mode": "form", "message": "Cookies?"}),
            ),
            false,
        ),
        ("the question", asked.clone(), true),
    ] {
        let outcome = fixture.host.approve_asked(&ask, "ann").await;
        assert_eq!(outcome.ok(), Some(is_approved), "{what}");
        let is_stored = fixture.host.is_approved("workspace.read").await;
        assert_eq!(is_stored.ok(), Some(is_approved), "{what}");
    }
    assert_eq!(fixture.ask("workspace.read").await, approved(true));
    fixture.host.stop();
    let outcome = fixture.host.approve_asked(&asked, "ann").await;
    assert_eq!(outcome.ok(), Some(false), "the plugin was removed");
}

#[tokio::test]
async fn a_question_goes_to_the_user_of_the_call_that_it_names() {
    let fixture = HostFixture::new();
    let (first, a) = fixture.open_call("decline");
    let (second, b) = fixture.open_call("accept");
    a.set_id("raddle-1");
    b.set_id("raddle-2");
    let error = fixture.ask("workspace.read").await.expect_err("ambiguous");
    assert!(error.contains("send `call_id`"), "{error}");
    for (id, is_approved) in [("raddle-1", false), ("raddle-2", true)] {
        let params = json!({ "permission": "workspace.read", "call_id": id });
        let answer = fixture.call("host/request_approval", params).await;
        assert_eq!(answer, approved(is_approved), "{id}");
    }
    let asked = |it: &FakeUser| it.asked.load(Ordering::Relaxed);
    assert_eq!((asked(&first), asked(&second)), (1, 1));
}
