//! Paths that `fs/*` serves to no client, and paths that it serves to no observer.

use std::os::unix::fs::symlink;
use std::path::Path;

use raddle_protocol::METHODS;
use raddle_rpc::ConnectionLimits;
use raddle_server::{Options, Server};
use serde_json::{Value, json};

use crate::client::{TestClient, answer};
use crate::player::Harness;

/// Every request that takes a path of the client, and whether an observer may send it.
const REQUESTS: &[(&str, bool)] = &[
    ("fs/copy", false),
    ("fs/createDirectory", false),
    ("fs/getMetadata", true),
    ("fs/readDirectory", true),
    ("fs/readFile", true),
    ("fs/remove", false),
    ("fs/watch", true),
    ("fs/writeFile", false),
    ("fuzzyFileSearch", true),
];

fn params(harness: &Harness, method: &str, path: &str) -> Value {
    match method {
        "fs/copy" => json!({
            "sourcePath": path, "destinationPath": harness.path("copy"), "recursive": true,
        }),
        "fs/watch" => json!({"path": path, "watchId": path}),
        "fs/writeFile" => json!({"path": path, "dataBase64": "aGk="}),
        "fuzzyFileSearch" => json!({"roots": [path], "query": "e"}),
        _ => json!({"path": path}),
    }
}

/// A home with secrets in it, further secrets that the server is configured with, and links to
/// them.
struct Secrets {
    harness: Harness,
    server: Server,
}

const SECRET: &str = "sk-planted-secret";

fn secrets() -> Secrets {
    let harness = Harness::new();
    let token = harness.path("token");
    let key = harness.path("key");
    std::fs::write(&token, SECRET).unwrap();
    std::fs::write(&key, SECRET).unwrap();
    std::fs::write(harness.home.join("credentials.json"), SECRET).unwrap();
    std::fs::create_dir_all(harness.home.join("skills/spin")).unwrap();
    std::fs::write(harness.home.join("skills/spin/SKILL.md"), "# Spin").unwrap();
    let config = format!(
        "# {SECRET}\n[model_providers.mine]\nbase_url = 'http://127.0.0.1:9'\nkey_file = '{key}'\n"
    );
    std::fs::write(harness.config(), config).unwrap();
    symlink("/proc", harness.path("processes")).unwrap();
    symlink(&harness.home, harness.path("home")).unwrap();
    symlink(harness.home.join("credentials.json"), harness.path("link")).unwrap();
    std::fs::hard_link(
        harness.home.join("credentials.json"),
        harness.path("second"),
    )
    .unwrap();
    std::fs::hard_link(&token, harness.path("second-token")).unwrap();
    let options = Options {
        secrets: vec![token.into()],
        ..harness.options()
    };
    let server = Server::open(options, crate::script::threads(&[])).expect("a server");
    Secrets { harness, server }
}

/// Returns closed paths, in many spellings.
fn closed(harness: &Harness) -> Vec<String> {
    let home = harness.home.display().to_string();
    let mut paths = vec![
        "/proc/self/environ".to_owned(),
        "/proc/thread-self/environ".to_owned(),
        "/proc/self/task".to_owned(),
        "/proc".to_owned(),
        "/proc/self/root/proc/self/environ".to_owned(),
        "/dev/fd".to_owned(),
        "/usr/../proc/self/environ".to_owned(),
        format!("{home}/credentials.json"),
        format!("{home}/skills/../credentials.json"),
        format!("{home}/new"),
        harness.config().display().to_string(),
        home,
    ];
    for name in [
        "token",
        "key",
        "processes/self/environ",
        "home/",
        "home/.",
        "home/credentials.json",
        "home/../home/config.toml",
        "link",
        "second",
        "second-token",
    ] {
        paths.push(harness.path(name));
    }
    paths
}

#[test]
fn each_request_with_a_path_is_in_the_list() {
    let with_path = METHODS.iter().filter(|it| it.name.starts_with("fs/"));
    for row in with_path.filter(|it| it.name != "fs/unwatch") {
        let is_listed = REQUESTS.iter().any(|(name, _)| *name == row.name);
        assert!(is_listed, "{} must keep closed what is closed", row.name);
    }
}

/// Tested as a driver, the role with the most rights.
#[tokio::test]
async fn processes_keys_and_tokens_are_served_to_no_client() {
    let Secrets {
        harness,
        mut server,
    } = secrets();
    let mut client = TestClient::connect(&mut server).await;
    for path in closed(&harness) {
        for (method, _) in REQUESTS {
            // Removing a name or copying a link does not touch its target.
            let names = ["link", "second", "second-token"].map(|it| harness.path(it));
            let is_name = path == "/dev/fd" || names.contains(&path);
            if is_name && ["fs/remove", "fs/copy"].contains(method) {
                continue;
            }
            let answer = client.ask(method, params(&harness, method, &path)).await;
            let refused = answer.expect_err(&format!("{method} served {path}"));
            assert_eq!(
                refused["data"]["errorInfo"], "closed_path",
                "{method} {path}: {refused}"
            );
        }
    }
    // A whole folder includes its contents.
    let parent_folder = harness.home.parent().unwrap().display().to_string();
    for path in [parent_folder.as_str(), "/"] {
        let refused = client
            .ask("fs/copy", params(&harness, "fs/copy", path))
            .await;
        assert!(refused.is_err(), "{path}");
    }
    // Removing a folder includes its contents, too: also by another name, and where the name of a
    // key is a link in it.
    for folder in ["keys", "named"] {
        std::fs::create_dir(harness.path(folder)).unwrap();
    }
    let linked = harness.path("named/key");
    symlink(harness.path("key"), &linked).unwrap();
    symlink(&parent_folder, harness.path("way-around")).unwrap();
    symlink(harness.path("named"), harness.path("way")).unwrap();
    let config = std::fs::read_to_string(harness.config()).unwrap();
    let more = format!(
        "[model_providers.other]\nkey_file = '{}'\n",
        harness.path("way/key")
    );
    std::fs::write(harness.config(), format!("{config}{more}")).unwrap();
    client
        .ask("config/read", json!({}))
        .await
        .expect("read anew");
    for path in [
        parent_folder.clone(),
        format!("{parent_folder}/"),
        harness.path("way-around/"),
        harness.path("home/.."),
        harness.path(""),
        harness.path("named"),
    ] {
        let refused = client.ask("fs/remove", json!({"path": path})).await;
        let refused = refused.expect_err(&path);
        assert_eq!(refused["data"]["errorInfo"], "closed_path", "{path}");
    }
    assert!(std::fs::exists(harness.config()).unwrap() && std::fs::exists(&linked).unwrap());
    let removed = client
        .ask("fs/remove", json!({"path": harness.path("keys")}))
        .await;
    assert_eq!(removed, Ok(json!({})));
    let second = params(&harness, "fs/copy", &harness.path("second"));
    assert!(client.ask("fs/copy", second).await.is_err());
    assert!(!Path::new(&harness.path("copy")).exists());
    let matches = client.ask(
        "fuzzyFileSearch",
        json!({"roots": [parent_folder], "query": "credentials"}),
    );
    assert_eq!(matches.await, Ok(json!({"files": []})));
    // Nothing was written there, and skills are still readable.
    let contents = std::fs::read_to_string(harness.home.join("credentials.json"));
    assert_eq!(contents.unwrap(), SECRET);
    let skill = harness
        .home
        .join("skills/spin/SKILL.md")
        .display()
        .to_string();
    client
        .ask("fs/readFile", json!({"path": skill}))
        .await
        .expect("a skill");
}

/// A workspace may be full of links that a model made.
#[tokio::test]
async fn nothing_is_written_through_links_into_what_is_closed() {
    let Secrets {
        harness,
        mut server,
    } = secrets();
    let mut client = TestClient::connect(&mut server).await;
    for folder in ["src/sub", "dst", "made"] {
        std::fs::create_dir_all(harness.path(folder)).unwrap();
    }
    std::fs::write(harness.path("src/a"), "planted").unwrap();
    std::fs::write(harness.path("src/sub/b"), "planted").unwrap();
    symlink("anywhere", harness.path("src/sub/c")).unwrap();
    symlink(harness.home.join("credentials.json"), harness.path("dst/a")).unwrap();
    symlink("home/planted", harness.path("new")).unwrap();
    symlink(&harness.home, harness.path("made/sub")).unwrap();
    let before = names(&harness.home);
    let copy = |from: &str, to: &str| {
        json!({
            "sourcePath": harness.path(from), "destinationPath": harness.path(to), "recursive": true,
        })
    };
    let path = |path: &str| json!({"path": harness.path(path)});
    for (method, params) in [
        ("fs/copy", copy("src", "dst")),
        ("fs/copy", copy("src", "made")),
        ("fs/copy", copy("src/a", "new")),
        ("fs/copy", copy("src/sub/c", "home/planted")),
        (
            "fs/writeFile",
            json!({"path": harness.path("new"), "dataBase64": "aGk="}),
        ),
        ("fs/createDirectory", path("new")),
        ("fs/createDirectory", path("new/below")),
        ("fs/createDirectory", path("home/planted/below")),
        ("fs/remove", path("home/credentials.json")),
    ] {
        let refused = client.ask(method, params.clone()).await;
        let refused = refused.expect_err(&format!("{method} {params}"));
        let is_closed = refused["data"]["errorInfo"] == "closed_path";
        // A broken link is no folder.
        assert!(
            is_closed || params["path"] == harness.path("new/below"),
            "{method} {params}: {refused}"
        );
        assert_eq!(names(&harness.home), before, "{method} {params}");
    }
    let contents = std::fs::read_to_string(harness.home.join("credentials.json"));
    assert_eq!(contents.unwrap(), SECRET);
}

fn names(folder: &Path) -> Vec<std::ffi::OsString> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> = entries.map(|it| it.unwrap().file_name()).collect();
    names.sort();
    names
}

/// The number of writes to a folder while it is exchanged for a link.
const RACES: usize = 300;

#[tokio::test]
async fn a_folder_that_is_exchanged_for_a_link_is_judged_where_it_is_written() {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let Secrets {
        harness,
        mut server,
    } = secrets();
    let mut client = TestClient::connect(&mut server).await;
    std::fs::create_dir(harness.path("folder")).unwrap();
    let target = harness.home.join("victim");
    std::fs::create_dir(&target).unwrap();
    std::fs::write(target.join("kept"), "").unwrap();
    symlink(&target, harness.path("way")).unwrap();
    let is_over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (folder, link) = (harness.path("folder"), harness.path("way"));
    let exchanger = std::thread::spawn({
        let is_over = is_over.clone();
        move || {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE).expect("exchanged");
            }
        }
    });
    for number in 0..RACES {
        let path = |name: &str| harness.path(&format!("folder/{name}"));
        let new = path(&format!("planted{number}"));
        let write = json!({"path": new, "dataBase64": "aGk="});
        let _ = client.ask("fs/writeFile", write).await;
        let created = json!({"path": path(&format!("made{number}"))});
        let _ = client.ask("fs/createDirectory", created).await;
        let _ = client.ask("fs/remove", json!({"path": path("kept")})).await;
    }
    is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    exchanger.join().expect("an end");
    assert_eq!(names(&target), ["kept"]);
}

#[tokio::test]
async fn a_watch_does_not_follow_a_link_into_what_is_closed() {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let Secrets {
        harness,
        mut server,
    } = secrets();
    let mut client = TestClient::connect(&mut server).await;
    for name in ["w", "other"] {
        std::fs::create_dir(harness.path(name)).unwrap();
        let params = json!({"path": harness.path(name), "watchId": name});
        client.ask("fs/watch", params).await.expect("a watch");
    }
    let (w, home) = (harness.path("w"), harness.path("home"));
    renameat_with(CWD, &w, CWD, &home, RenameFlags::EXCHANGE).expect("exchanged");
    let notification = client.next().await;
    assert_eq!(
        notification["params"]["changedPaths"],
        json!([w]),
        "{notification}"
    );
    std::fs::write(harness.home.join("planted"), "").unwrap();
    std::fs::write(harness.path("other/file"), "").unwrap();
    loop {
        let notification = client.next().await;
        assert_eq!(notification["params"]["watchId"], "other", "{notification}");
        if notification["params"]["changedPaths"] == json!([harness.path("other/file")]) {
            break;
        }
    }
}

#[tokio::test]
async fn an_observer_reads_workspaces_of_threads_that_it_follows() {
    let Secrets {
        harness,
        mut server,
    } = secrets();
    let elsewhere = harness.home.parent().unwrap().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("diary"), "x").unwrap();
    std::fs::write(harness.path("notes"), "x").unwrap();
    symlink(&elsewhere, harness.path("way")).unwrap();
    let mut driver = TestClient::connect(&mut server).await;
    let response = driver
        .ask("thread/start", json!({"cwd": harness.path("")}))
        .await;
    let thread = response.expect("a thread")["thread"]["id"].clone();
    let capabilities = json!({"extensions": {"raddle/roles": {"role": "observer"}}});
    let mut observer =
        TestClient::connect_with(&mut server, ConnectionLimits::default(), capabilities).await;
    let read_methods = || {
        REQUESTS
            .iter()
            .filter(|(_, is_read)| *is_read)
            .map(|(method, _)| *method)
    };
    let outside = [
        elsewhere.join("diary").display().to_string(),
        elsewhere.join("missing").display().to_string(),
        harness.path("way/diary"),
        harness.path("../elsewhere/diary"),
        "/etc/passwd".to_owned(),
        "/".to_owned(),
    ];
    // It follows no thread yet.
    for path in outside.iter().chain([&harness.path("notes")]) {
        for method in read_methods() {
            let answer = answer(&mut observer, method, params(&harness, method, path)).await;
            let refused = answer.expect_err(&format!("{method} served {path}"));
            assert_eq!(
                refused["data"]["errorInfo"], "observer",
                "{method} {path}: {refused}"
            );
        }
    }
    let resumed = answer(&mut observer, "thread/resume", json!({"threadId": thread})).await;
    resumed.expect("heard");
    let notes = harness.path("notes");
    for method in read_methods().filter(|it| *it != "fs/readDirectory") {
        let answer = answer(&mut observer, method, params(&harness, method, &notes)).await;
        assert!(answer.is_ok(), "{method}: {answer:?}");
    }
    let listed = answer(
        &mut observer,
        "fs/readDirectory",
        json!({"path": harness.path("")}),
    )
    .await;
    let listed = listed.expect("a list");
    let entries = listed["entries"].as_array().unwrap();
    let link_entry = entries
        .iter()
        .find(|it| it["fileName"] == "way")
        .expect("the link");
    assert_eq!(
        *link_entry,
        json!({"fileName": "way", "isDirectory": false, "isFile": false})
    );
    for path in &outside {
        for method in read_methods() {
            let answer = answer(&mut observer, method, params(&harness, method, path)).await;
            let refused = answer.expect_err(&format!("{method} served {path}"));
            assert_eq!(
                refused["data"]["errorInfo"], "observer",
                "{method} {path}: {refused}"
            );
        }
    }
    for path in closed(&harness) {
        for method in read_methods() {
            let answer = answer(&mut observer, method, params(&harness, method, &path)).await;
            assert!(answer.is_err(), "{method} served {path}");
        }
    }
    let request = json!({"cwds": [elsewhere.display().to_string()]});
    assert!(answer(&mut observer, "skills/list", request).await.is_err());
}

/// A skill of a workspace, the target of its file, and whether its description is listed.
const SKILLS: &[(&str, &str, bool)] = &[
    ("plain", "", true),
    ("inside", "docs/skill.md", true),
    ("config", "HOME/note.md", false),
    ("key", "key", false),
    ("second-key", "second-key.md", false),
    ("outside", "AROUND/elsewhere/other.md", false),
    ("not-markdown", "docs/skill.txt", false),
    ("missing", "HOME/missing.md", false),
    ("processes", "/proc/self/environ", false),
];

#[tokio::test]
async fn skills_are_read_through_no_link_out_of_the_workspace() {
    let Secrets {
        harness,
        mut server,
    } = secrets();
    let parent_folder = harness.home.parent().unwrap().to_owned();
    let home = harness.home.display().to_string();
    let skill = format!("---\nname: x\ndescription: {SECRET}\n---\n");
    for folder in [
        "docs",
        ".agents/skills",
        "../elsewhere/linked",
        "docs/linked",
    ] {
        std::fs::create_dir_all(harness.path(folder)).unwrap();
    }
    for file in [
        "docs/skill.md",
        "docs/skill.txt",
        "docs/linked/SKILL.md",
        "../elsewhere/other.md",
        "../elsewhere/linked/SKILL.md",
        "key",
    ] {
        std::fs::write(harness.path(file), &skill).unwrap();
    }
    std::fs::write(harness.home.join("note.md"), &skill).unwrap();
    std::fs::hard_link(harness.path("key"), harness.path("second-key.md")).unwrap();
    for (name, target, _) in SKILLS {
        let folder = harness.path(&format!(".agents/skills/{name}"));
        std::fs::create_dir(&folder).unwrap();
        let target = target.replace("HOME", &home);
        let target = target.replace("AROUND", &parent_folder.display().to_string());
        match target.as_str() {
            "" => std::fs::write(format!("{folder}/SKILL.md"), &skill).unwrap(),
            // Joined with the workspace unless it is absolute.
            target => {
                symlink(harness.workspace.join(target), format!("{folder}/SKILL.md")).unwrap()
            }
        }
    }
    let linked = |name: &str, target: &str| {
        symlink(
            harness.path(target),
            harness.path(&format!(".agents/skills/{name}")),
        )
        .unwrap();
    };
    linked("folder-inside", "docs/linked");
    linked("folder-outside", "../elsewhere/linked");
    linked("folder-missing", "../elsewhere/missing");
    let mut driver = TestClient::connect(&mut server).await;
    let response = driver
        .ask("thread/start", json!({"cwd": harness.path("")}))
        .await;
    let thread = response.expect("a thread")["thread"]["id"].clone();
    let capabilities = json!({"extensions": {"raddle/roles": {"role": "observer"}}});
    let mut observer =
        TestClient::connect_with(&mut server, ConnectionLimits::default(), capabilities).await;
    let resumed = answer(&mut observer, "thread/resume", json!({"threadId": thread})).await;
    resumed.expect("heard");
    let mut expected: Vec<&str> = SKILLS.iter().filter(|it| it.2).map(|it| it.0).collect();
    expected.push("folder-inside");
    expected.sort();
    for (client, is_observer) in [(&mut driver, false), (&mut observer, true)] {
        let params = json!({"cwds": [harness.workspace]});
        let listed = answer(client, "skills/list", params).await.expect("a list");
        let listed = &listed["data"][0];
        let name = |it: &Value| {
            let path = Path::new(it["path"].as_str().unwrap());
            let folder = path.parent().unwrap().file_name().unwrap();
            folder.to_str().unwrap().to_owned()
        };
        let skills = listed["skills"].as_array().unwrap().iter();
        let mut listed_names: Vec<String> = skills
            .filter(|it| it["scope"] == "repo")
            .map(name)
            .collect();
        listed_names.sort();
        assert_eq!(listed_names, expected, "{listed}");
        // A broken link has the same error as one to a closed path.
        let errors = listed["errors"].as_array().unwrap();
        for error in errors.iter().filter(|it| name(it) != "spin") {
            assert_eq!(
                error["message"], "is behind a link that is not followed",
                "{error}"
            );
        }
        let error_count = errors.iter().map(name).filter(|it| it != "spin").count();
        assert_eq!(error_count, SKILLS.len() + 3 - expected.len(), "{errors:?}");
        assert_eq!(errors.iter().any(|it| name(it) == "spin"), !is_observer);
    }
    // The folder itself may be a link, too.
    let moved = harness.path("../elsewhere/skills");
    std::fs::rename(harness.path(".agents/skills"), &moved).unwrap();
    symlink(&moved, harness.path(".agents/skills")).unwrap();
    let params = json!({"cwds": [harness.workspace]});
    let listed = answer(&mut driver, "skills/list", params)
        .await
        .expect("a list");
    assert_eq!(listed["data"][0]["skills"], json!([]));
}
