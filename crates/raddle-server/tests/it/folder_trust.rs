//! The question whether a folder with skills is trusted.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use raddle_server::Server;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::client::TestClient;
use crate::player::Harness;

const QUESTION: &str = "item/tool/requestUserInput";

/// Timeout for the configuration. Only a failing test waits this long.
const LIMIT: Duration = Duration::from_secs(10);

/// A server, and a thread in a folder with a skill that nothing is known about.
struct TrustCase {
    harness: Harness,
    folder: PathBuf,
    server: Server,
    client: TestClient,
    thread: Value,
    /// The newest turn.
    turn: Value,
}

impl TrustCase {
    /// Opens the server with a model that follows this script.
    async fn open(says: &[&str]) -> Self {
        let mut harness = Harness::new();
        harness.says = says.iter().map(|it| (*it).to_owned()).collect();
        // A name that must be quoted in the configuration.
        let folder = harness.workspace.join("it's a \"shop\" of é");
        let skill = folder.join(".agents/skills/tidy");
        fs::create_dir_all(&skill).unwrap();
        let text = "---\nname: tidy\ndescription: Tidies.\n---\nHow to tidy.\n";
        fs::write(skill.join("SKILL.md"), text).unwrap();
        let mut server = harness.open();
        let mut client = TestClient::connect(&mut server).await;
        let thread = start(&mut client, &folder).await;
        Self {
            harness,
            folder,
            server,
            client,
            thread,
            turn: Value::Null,
        }
    }

    async fn begin_turn(&mut self) {
        let input = json!([{"type": "text", "text": "$tidy"}]);
        let params = json!({"threadId": self.thread, "input": input});
        let response = self.client.ask("turn/start", params).await;
        self.turn = response.expect("a turn")["turn"]["id"].take();
    }

    /// Returns the messages up to the first of this method.
    async fn until(&mut self, method: &str) -> Vec<Value> {
        let mut messages = Vec::new();
        loop {
            let message = self.client.next().await;
            let is_last = message["method"] == method;
            messages.push(message);
            if is_last {
                return messages;
            }
        }
    }

    /// Begins a turn, and returns the question. The model has begun its answer by then: an interrupt
    /// before that would leave the answer to the next turn.
    async fn question(&mut self) -> Value {
        self.begin_turn().await;
        let mut messages = Vec::new();
        while count(&messages, QUESTION) == 0 || count(&messages, "item/agentMessage/delta") == 0 {
            messages.push(self.client.next().await);
        }
        assert_eq!(warnings(&messages), Vec::<&str>::new());
        let question = messages.iter().find(|it| it["method"] == QUESTION);
        question.expect("the question").clone()
    }

    fn answer(&self, question: &Value, answers: Value) {
        let result = json!({ "answers": answers });
        let response = json!({"id": question["id"], "result": result});
        self.client.send(&response);
    }

    /// Interrupts the turn, and returns the messages up to its end.
    async fn interrupt(&mut self) -> Vec<Value> {
        let params = json!({"threadId": self.thread, "turnId": self.turn});
        self.client.request("turn/interrupt", params);
        self.until("turn/completed").await
    }

    /// Waits until the configuration has a level for the folder.
    async fn stored_level(&self) -> String {
        let stored = async {
            loop {
                let text = fs::read_to_string(self.harness.config()).unwrap_or_default();
                let config: toml::Table = text.parse().unwrap();
                let folder = self.folder.to_str().unwrap();
                let projects = config.get("projects").and_then(|it| it.as_table());
                if let Some(project) = projects.and_then(|it| it.get(folder)) {
                    return project["trust_level"].as_str().unwrap().to_owned();
                }
                tokio::task::yield_now().await;
            }
        };
        timeout(LIMIT, stored).await.expect("a level in time")
    }

    /// Runs a turn to its end; returns the notes of the model, and all messages.
    async fn notes(&mut self) -> (String, Vec<Value>) {
        self.begin_turn().await;
        let messages = self.until("turn/completed").await;
        let items = messages.iter().map(|it| &it["params"]["item"]);
        let mut answers = items.filter(|it| it["type"] == "agentMessage");
        let notes = answers.next_back().expect("an answer")["text"].as_str();
        (notes.unwrap().to_owned(), messages)
    }
}

async fn start(client: &mut TestClient, folder: &std::path::Path) -> Value {
    let response = client.ask("thread/start", json!({ "cwd": folder })).await;
    let thread = response.expect("a thread")["thread"]["id"].take();
    assert_eq!(client.next().await["method"], "thread/started");
    thread
}

fn warnings(messages: &[Value]) -> Vec<&str> {
    let warnings = messages.iter().filter(|it| it["method"] == "warning");
    let texts = warnings.filter_map(|it| it["params"]["message"].as_str());
    texts.collect()
}

fn count(messages: &[Value], method: &str) -> usize {
    messages.iter().filter(|it| it["method"] == method).count()
}

#[tokio::test]
async fn the_answer_is_stored_and_applies_from_the_next_turn_on() {
    for (label, level, is_offered) in [
        ("Trust", "trusted", true),
        ("Do not trust", "untrusted", false),
    ] {
        let mut case = TrustCase::open(&["working…", "notes"]).await;
        let question = case.question().await;
        let params = &question["params"];
        assert_eq!(params["threadId"], case.thread);
        // The turn runs on meanwhile.
        assert_eq!(params["isBlocking"], false);
        let text = params["questions"][0]["question"].as_str().unwrap();
        assert!(text.contains(case.folder.to_str().unwrap()), "{text}");
        // The stock terminal client adds notes of the user.
        let answers = [label, "user_note: I know them"];
        case.answer(&question, json!({"trust": {"answers": answers}}));
        let messages = case.until("serverRequest/resolved").await;
        let resolved = &messages.last().unwrap()["params"];
        assert_eq!(resolved["requestId"], question["id"]);
        assert_eq!(case.stored_level().await, level);
        case.interrupt().await;
        let (notes, messages) = case.notes().await;
        assert_eq!(notes.contains("How to tidy."), is_offered, "{notes}");
        assert_eq!(count(&messages, QUESTION), 0);
        assert_eq!(warnings(&messages), Vec::<&str>::new());
    }
}

/// Also of a client without a user, which sends no answer.
#[tokio::test]
async fn an_answer_without_a_decision_leads_to_the_warning() {
    for answers in [json!({}), json!({"trust": {"answers": ["Not now"]}})] {
        let mut case = TrustCase::open(&["working…", "notes"]).await;
        let question = case.question().await;
        case.answer(&question, answers);
        let messages = case.until("warning").await;
        let warning = warnings(&messages)[0];
        assert!(warning.contains("trust_level"), "{warning}");
        case.interrupt().await;
        let (notes, messages) = case.notes().await;
        assert!(!notes.contains("tidy:"), "{notes}");
        assert_eq!(count(&messages, QUESTION), 0);
        assert_eq!(warnings(&messages), Vec::<&str>::new());
        assert!(!case.harness.config().exists());
    }
}

#[tokio::test]
async fn a_question_ends_with_its_turn_and_is_asked_once_more() {
    let mut case = TrustCase::open(&["working…", "working…", "notes"]).await;
    let first = case.question().await;
    let messages = case.interrupt().await;
    assert_eq!(count(&messages, "serverRequest/resolved"), 1);
    let second = case.question().await;
    assert_ne!(first["id"], second["id"]);
    let messages = case.interrupt().await;
    assert_eq!(count(&messages, "serverRequest/resolved"), 1);
    let warning = case.until("warning").await;
    assert!(warnings(&warning)[0].contains("trust_level"));
    let (_, messages) = case.notes().await;
    assert_eq!(count(&messages, QUESTION), 0);
}

#[tokio::test]
async fn one_thread_of_a_folder_asks_at_a_time_and_every_client_of_it_may_answer() {
    let mut case = TrustCase::open(&["working…", "working…", "notes"]).await;
    let question = case.question().await;
    let mut other = TestClient::connect(&mut case.server).await;
    let joining = other.request("thread/resume", json!({"threadId": case.thread}));
    let mut again = other.next().await;
    while again["method"] != QUESTION {
        assert!(again["id"] != joining || again.get("result").is_some());
        again = other.next().await;
    }
    assert_eq!(again["id"], question["id"]);
    // Another thread in the folder asks nothing.
    let thread = start(&mut other, &case.folder).await;
    let input = json!([{"type": "text", "text": "hi"}]);
    let params = json!({"threadId": thread, "input": input});
    other.request("turn/start", params);
    let mut message = other.next().await;
    while message["method"] != "item/agentMessage/delta" {
        assert_ne!(message["method"], QUESTION);
        message = other.next().await;
    }
    let answers = json!({"trust": {"answers": ["Trust"]}});
    let response = json!({"id": again["id"], "result": {"answers": answers}});
    other.send(&response);
    assert_eq!(case.stored_level().await, "trusted");
    case.interrupt().await;
    let (notes, _) = case.notes().await;
    assert!(notes.contains("How to tidy."), "{notes}");
}
