//! Commands cannot change the files that configure the server.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{answer, exec};
use crate::support::server::TestServer;

const LISTEN_ARGS: [&str; 3] = ["--listen", "ws://127.0.0.1:0", "--insecure-loopback"];

/// A server with its settings and threads below this folder. It is not the user's home, so commands
/// may write it.
fn server_of(user: &Path) -> TestServer {
    let setup = format!(
        "unset RADDLE_HOME; export HOME=/var/tmp XDG_CONFIG_HOME={0}/.config XDG_STATE_HOME={0}/.local/state",
        user.display()
    );
    TestServer::start_under(&setup, &LISTEN_ARGS)
}

fn run(server: &TestServer, cwd: &Path, script: &str) -> Value {
    let mut client = server.client();
    let more = json!({"cwd": cwd, "sandboxPolicy": {"type": "workspaceWrite"}});
    client.send(&exec("run", script, more));
    answer(&mut client)
}

/// A command may write the user's folder, which contains the folder of the rules.
#[test]
fn no_command_creates_rules() {
    let user = TempDir::new_in("/var/tmp").expect("a folder");
    let server = server_of(user.path());
    let config = user.path().join(".config/raddle");
    drop(server.client());
    let about = fs::metadata(&config).expect("the server makes it");
    assert_eq!(about.permissions().mode() & 0o777, 0o700);
    let make = "mkdir -p .config/raddle; echo x > .config/raddle/rules.toml";
    for script in [
        make.to_owned(),
        format!("mv .config away; {make}"),
        format!("mv .config/raddle away; {make}"),
        format!("rm -rf .config; {make}"),
        format!("ln -sfn /tmp .config/raddle; {make}"),
    ] {
        for is_there in [true, false] {
            if !is_there {
                fs::remove_dir_all(user.path().join(".config")).expect("it was there");
            }
            run(&server, user.path(), &script);
            assert!(config.is_dir(), "{script}");
            assert!(!config.join("rules.toml").exists(), "{script}");
        }
    }
    server.stop();
}

/// The rules are in a repository of settings, behind a link.
#[test]
fn no_command_changes_rules_through_a_link() {
    let user = TempDir::new_in("/var/tmp").expect("a folder");
    let (config, settings) = (user.path().join(".config/raddle"), user.path().join("kept"));
    fs::create_dir_all(&config).expect("folders");
    fs::create_dir(&settings).expect("a folder");
    fs::write(settings.join("rules.toml"), "# mine\n").expect("a file");
    symlink(settings.join("rules.toml"), config.join("rules.toml")).expect("a link");
    let server = server_of(user.path());
    for script in [
        "echo x > kept/rules.toml",
        "rm -f kept/rules.toml; echo x > kept/rules.toml",
        "mv kept away; mkdir kept; echo x > kept/rules.toml",
    ] {
        for cwd in [user.path(), &settings] {
            let script = match cwd == user.path() {
                true => script.to_owned(),
                false => script.replace("kept/", ""),
            };
            run(&server, cwd, &script);
            let text = fs::read_to_string(config.join("rules.toml")).expect("the rules");
            assert_eq!(text, "# mine\n", "{script}");
        }
    }
    fs::remove_file(config.join("rules.toml")).expect("it was there");
    symlink(settings.join("new.toml"), config.join("rules.toml")).expect("a link");
    let response = run(&server, &settings, "echo x > new.toml");
    let why = response["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("create it, or remove the link"), "{response}");
    server.stop();
}

/// The configuration is in a repository of settings. A client writes it while a command runs that
/// may write around it: a mount over the file would vanish with the file.
#[test]
fn no_command_reads_or_changes_a_configuration_that_is_written_meanwhile() {
    // The folder of the file, the folder of the command, and whether the command is run at all.
    for (settings_folder, cwd, runs) in [
        ("kept", "", true),
        ("deeper/kept", "", true),
        ("kept", "kept", false),
        ("kept", "other", true),
    ] {
        let user = TempDir::new_in("/var/tmp").expect("a folder");
        let (config, settings) = (
            user.path().join(".config/raddle"),
            user.path().join(settings_folder),
        );
        for folder in [&config, &settings, &user.path().join("other")] {
            fs::create_dir_all(folder).expect("folders");
        }
        let secret = "[model_providers.y]\nexperimental_bearer_token = 'sekret'\n";
        fs::write(settings.join("config.toml"), secret).expect("a file");
        symlink(settings.join("config.toml"), config.join("config.toml")).expect("a link");
        let cwd = user.path().join(cwd);
        let (ready, go) = (cwd.join("ready"), cwd.join("go"));
        let server = server_of(user.path());
        let mut client = server.client();
        let file = settings.join("config.toml");
        let file = file.display();
        let script = format!(
            ": > ready; until [ -e go ]; do sleep 0.01; done; cat {file}; echo 'model = 3' >> {file}; :"
        );
        let more = json!({"cwd": cwd, "sandboxPolicy": {"type": "workspaceWrite"}});
        client.send(&exec("run", &script, more));
        if runs {
            crate::support::eventually("the command", || ready.exists().then_some(()));
        }
        let mut other = server.client();
        for model in ["one", "two"] {
            let edit = json!({"keyPath": "model", "value": model, "mergeStrategy": "replace"});
            other.send(&crate::support::request(
                "write",
                "config/value/write",
                edit,
            ));
            let written = answer(&mut other);
            assert_eq!(written["result"]["status"], "ok", "{written}");
        }
        fs::write(go, "").expect("a file");
        let response = answer(&mut client);
        assert_eq!(response["result"]["exitCode"] == 0, runs, "{response}");
        assert!(
            !response.to_string().contains("sekret"),
            "{file}: {response}"
        );
        let text = fs::read_to_string(config.join("config.toml")).expect("the configuration");
        assert!(
            text.contains("sekret") && text.contains("two"),
            "{file}: {text}"
        );
        assert!(!text.contains("model = 3"), "{file}: {text}");
        let about = fs::symlink_metadata(config.join("config.toml")).expect("it is there");
        assert!(about.is_symlink(), "a link stays a link");
        server.stop();
    }
}
