//! Skills in the model's context.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use raddle_server::Server;
use serde_json::{Value, json};

use crate::client::TestClient;
use crate::player::Harness;

/// A server whose model answers with the notes that it got, and a thread in the workspace.
struct SkillCase {
    harness: Harness,
    _server: Server,
    client: TestClient,
    thread: Value,
}

impl SkillCase {
    async fn open(harness: Harness) -> Self {
        let cwd = harness.workspace.clone();
        Self::open_in(&cwd, harness).await
    }

    async fn open_in(cwd: &Path, harness: Harness) -> Self {
        Self::open_with(json!({"cwd": cwd}), harness).await
    }

    async fn open_with(params: Value, harness: Harness) -> Self {
        let mut server = harness.open();
        let mut client = TestClient::connect(&mut server).await;
        let response = client.ask("thread/start", params).await;
        let thread = response.expect("a thread")["thread"]["id"].take();
        assert_eq!(client.next().await["method"], "thread/started");
        Self {
            harness,
            _server: server,
            client,
            thread,
        }
    }

    /// Runs a turn with a text; returns the notes of the model, and the warnings.
    async fn say(&mut self, text: &str) -> (String, Vec<String>) {
        self.send(json!([{"type": "text", "text": text}])).await
    }

    async fn send(&mut self, input: Value) -> (String, Vec<String>) {
        let params = json!({"threadId": self.thread, "input": input});
        self.client.ask("turn/start", params).await.expect("a turn");
        let (mut notes, mut warnings) = (String::new(), Vec::new());
        loop {
            let message = self.client.next().await;
            let params = &message["params"];
            match message["method"].as_str().unwrap_or_default() {
                "warning" => warnings.push(params["message"].as_str().unwrap().to_owned()),
                "item/completed" if params["item"]["type"] == "agentMessage" => {
                    notes = params["item"]["text"].as_str().unwrap().to_owned();
                }
                "turn/completed" => return (notes, warnings),
                _ => {}
            }
        }
    }

    fn trust(&self, level: &str) {
        trust(&self.harness, &[(self.harness.workspace.as_path(), level)]);
    }
}

fn harness() -> Harness {
    let mut harness = Harness::new();
    harness.says = vec!["notes".to_owned(); 4];
    harness
}

/// Writes a skill; returns the path of its file.
fn add_skill(folder: impl AsRef<Path>, name: &str) -> PathBuf {
    let file = folder.as_ref().join(name).join("SKILL.md");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let text = format!("---\nname: {name}\ndescription: Does {name}.\n---\nHow to {name}.\n");
    fs::write(&file, text).unwrap();
    file
}

/// Returns the folder of the user's skills that commands can read.
fn user_folder(harness: &Harness) -> PathBuf {
    harness.options().paths.shared_skills[0].clone()
}

/// Writes the levels of trust of folders into the configuration.
fn trust(harness: &Harness, levels: &[(&Path, &str)]) {
    let entries = levels.iter().map(|(folder, level)| {
        let folder = folder.display();
        format!("[projects.\"{folder}\"]\ntrust_level = \"{level}\"\n")
    });
    fs::write(harness.config(), entries.collect::<String>()).unwrap();
}

#[tokio::test]
async fn names_and_descriptions_come_from_all_folders_in_order() {
    let harness = harness();
    trust(&harness, &[(harness.workspace.as_path(), "trusted")]);
    let mut expected = Vec::new();
    for (name, folder) in [
        ("e", harness.workspace.join(".codex/skills")),
        ("d", harness.workspace.join(".agents/skills")),
        ("c", harness.options().paths.admin_skills()),
        ("a", user_folder(&harness)),
    ] {
        let file = add_skill(folder, name);
        expected.insert(
            0,
            format!("- {name}: Does {name}. (file: {})\n", file.display()),
        );
    }
    add_skill(harness.home.join("skills"), "b");
    let hidden = "- b: Does b. (hidden from commands; you get it when the user writes $b)\n";
    expected.insert(1, hidden.to_owned());
    let mut case = SkillCase::open(harness).await;
    let (notes, warnings) = case.say("hi").await;
    assert!(notes.contains(&expected.concat()), "{notes}");
    assert!(!notes.contains("How to"), "{notes}");
    assert_eq!(warnings, Vec::<String>::new());
    // The same list is not sent again.
    let (notes, _) = case.say("go on").await;
    assert_eq!(notes.matches("# Skills").count(), 1, "{notes}");
}

#[tokio::test]
async fn a_named_skill_is_read_once_in_a_turn() {
    let harness = harness();
    add_skill(user_folder(&harness), "ship");
    let tidy = add_skill(user_folder(&harness), "tidy");
    add_skill(harness.home.join("skills"), "own");
    let mut case = SkillCase::open(harness).await;
    let count = |notes: &str, name: &str| notes.matches(&format!("\nHow to {name}.")).count();
    let (notes, _) = case.say("$tidy this, and $tidy that, with $own").await;
    let counts = ["tidy", "own", "ship"].map(|it| count(&notes, it));
    assert_eq!(counts, [1, 1, 0], "{notes}");
    let (notes, _) = case.say("thanks").await;
    assert_eq!(count(&notes, "tidy"), 1, "{notes}");
    // A part names a file. One that is not a listed skill is not read.
    let part = |path: &Path| json!({"type": "skill", "name": "tidy", "path": path});
    let text = json!({"type": "text", "text": "$tidy"});
    let secret = case.harness.home.join("secret.md");
    fs::write(&secret, "How to leak.\n").unwrap();
    let (notes, _) = case.send(json!([text, part(&secret)])).await;
    assert_eq!(count(&notes, "tidy"), 1, "{notes}");
    assert!(!notes.contains("leak"), "{notes}");
    let (notes, _) = case.send(json!([text, part(&tidy)])).await;
    assert_eq!(count(&notes, "tidy"), 2, "{notes}");
}

#[tokio::test]
async fn skills_of_a_workspace_wait_for_trust() {
    let harness = harness();
    add_skill(harness.workspace.join(".agents/skills"), "tidy");
    // Nothing may be asked here, so a warning says what to do.
    let params = json!({"cwd": harness.workspace, "approvalPolicy": "never"});
    let mut case = SkillCase::open_with(params, harness).await;
    let (notes, warnings) = case.say("$tidy").await;
    assert!(!notes.contains("tidy"), "{notes}");
    let [warning] = &warnings[..] else {
        panic!("one warning, not {warnings:?}");
    };
    let folder = case.harness.workspace.display();
    let key = format!("`[projects.\"{folder}\"]` with `trust_level = \"trusted\"`");
    assert!(warning.contains(&key), "{warning}");
    let (_, warnings) = case.say("$tidy").await;
    assert_eq!(warnings, Vec::<String>::new());
    case.trust("trusted");
    let (notes, warnings) = case.say("$tidy").await;
    assert!(notes.contains("- tidy: Does tidy."), "{notes}");
    assert!(notes.contains("How to tidy."), "{notes}");
    assert_eq!(warnings, Vec::<String>::new());
    // The operator has decided, so there is nothing to say.
    case.trust("untrusted");
    let (notes, warnings) = case.say("go on").await;
    assert!(notes.contains("no longer available"), "{notes}");
    assert_eq!(warnings, Vec::<String>::new());
}

#[tokio::test]
async fn the_nearest_listed_folder_decides() {
    let harness = harness();
    let (root, sub) = (harness.workspace.clone(), harness.workspace.join("sub"));
    fs::create_dir_all(root.join(".git")).unwrap();
    fs::create_dir_all(&sub).unwrap();
    add_skill(root.join(".agents/skills"), "tidy");
    let mut case = SkillCase::open_in(&sub, harness).await;
    let (root, sub) = (root.as_path(), sub.as_path());
    for (levels, is_offered) in [
        (&[(root, "trusted"), (sub, "untrusted")][..], false),
        (&[(root, "untrusted"), (sub, "trusted")], true),
        (&[(root, "trusted")], true),
        (&[(root, "untrusted")], false),
    ] {
        trust(&case.harness, levels);
        let (notes, warnings) = case.say("hi").await;
        let is_newest = notes.rfind("- tidy:") > notes.rfind("no longer available");
        assert_eq!(is_newest, is_offered, "{levels:?}: {notes}");
        assert_eq!(warnings, Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_disabled_skill_is_absent_from_the_next_turn_on() {
    let harness = harness();
    add_skill(user_folder(&harness), "tidy");
    let ship = add_skill(user_folder(&harness), "ship");
    let mut case = SkillCase::open(harness).await;
    let (notes, _) = case.say("hi").await;
    assert!(notes.contains("- tidy:") && notes.contains("- ship:"));
    for params in [
        json!({"name": "tidy", "enabled": false}),
        json!({"path": ship, "enabled": false}),
    ] {
        let written = case.client.ask("skills/config/write", params).await;
        assert_eq!(written, Ok(json!({"effectiveEnabled": false})));
        let notification = case.client.next().await;
        assert_eq!(notification["method"], "skills/changed");
    }
    let (notes, _) = case.say("$tidy and $ship").await;
    assert!(notes.contains("no longer available"), "{notes}");
    assert!(!notes.contains("How to"), "{notes}");
}

#[tokio::test]
async fn no_link_leads_out_of_a_trusted_workspace() {
    let harness = harness();
    trust(&harness, &[(harness.workspace.as_path(), "trusted")]);
    let outside = harness.home.with_file_name("outside");
    let file = add_skill(&outside, "tidy");
    let skills = harness.workspace.join(".agents/skills");
    fs::create_dir_all(skills.join("ship")).unwrap();
    symlink(outside.join("tidy"), skills.join("tidy")).unwrap();
    symlink(&file, skills.join("ship/SKILL.md")).unwrap();
    let mut case = SkillCase::open(harness).await;
    let part = json!({"type": "skill", "name": "tidy", "path": skills.join("tidy/SKILL.md")});
    let text = json!({"type": "text", "text": "$tidy and $ship"});
    let (notes, _) = case.send(json!([text, part])).await;
    assert!(
        !notes.contains("tidy") && !notes.contains("ship"),
        "{notes}"
    );
}

#[tokio::test]
async fn changes_are_announced_once_skills_were_listed() {
    let harness = Harness::new();
    add_skill(user_folder(&harness), "tidy");
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let params = json!({"cwds": [harness.workspace]});
    let listed = client.ask("skills/list", params.clone()).await.unwrap();
    assert_eq!(listed["data"][0]["skills"].as_array().unwrap().len(), 1);
    add_skill(user_folder(&harness), "ship");
    assert_eq!(client.next().await["method"], "skills/changed");
}
