//! What the server is told by its files is out of reach for what it runs.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{answer, exec};
use crate::support::server::Server;

const DOOR: [&str; 3] = ["--listen", "ws://127.0.0.1:0", "--insecure-loopback"];

/// A server of a user whose folder has nothing in it.
fn server_of(user: &Path) -> Server {
    let setup = format!(
        "unset RADDLE_HOME XDG_CONFIG_HOME XDG_STATE_HOME; export HOME={}",
        user.display()
    );
    Server::start_under(&setup, &DOOR)
}

fn run(server: &Server, cwd: &Path, script: &str) -> Value {
    let mut client = server.client();
    let more = json!({"cwd": cwd, "sandboxPolicy": {"type": "workspaceWrite"}});
    client.send(&exec("run", script, more));
    answer(&mut client)
}

/// A command may write the user's folder, around the one that rules are read from.
#[test]
fn no_command_makes_rules() {
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

/// The rules are kept in a repository of settings, and a link leads there.
#[test]
fn no_command_changes_rules_through_a_link() {
    let user = TempDir::new_in("/var/tmp").expect("a folder");
    let (config, kept) = (user.path().join(".config/raddle"), user.path().join("kept"));
    fs::create_dir_all(&config).expect("folders");
    fs::create_dir(&kept).expect("a folder");
    fs::write(kept.join("rules.toml"), "# mine\n").expect("a file");
    symlink(kept.join("rules.toml"), config.join("rules.toml")).expect("a link");
    let server = server_of(user.path());
    for script in [
        "echo x > kept/rules.toml",
        "rm -f kept/rules.toml; echo x > kept/rules.toml",
        "mv kept away; mkdir kept; echo x > kept/rules.toml",
    ] {
        for cwd in [user.path(), &kept] {
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
    symlink(kept.join("new.toml"), config.join("rules.toml")).expect("a link");
    let ran = run(&server, &kept, "echo x > new.toml");
    let why = ran["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("make it, or take the link away"), "{ran}");
    server.stop();
}
