//! `raddle plugin add` and what follows: the entry in the configuration, and trust by hash.

use std::fs;

use serde_json::Value;

use super::PluginFolder;
use crate::cli::{CliHome, CliOutput};

const ID: &str = "org.example";

fn folder() -> PluginFolder {
    PluginFolder::python("print('hello')", &[])
}

/// Runs a command that must succeed.
fn done(home: &CliHome, words: &[&str]) -> CliOutput {
    let output = home.run(words);
    assert_eq!(output.code, Some(0), "{words:?}: {}", output.err);
    output
}

/// Runs a command that must fail, and returns its error.
fn refused(home: &CliHome, words: &[&str]) -> String {
    let output = home.run(words);
    assert_ne!(output.code, Some(0), "{words:?}: {}", output.out);
    output.err
}

/// Returns the state of the one installed plugin.
fn state(home: &CliHome) -> String {
    let list = done(home, &["plugin", "list", "--json"]).out;
    let list: Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!(list[0]["id"], ID, "{list}");
    list[0]["state"].as_str().expect("a state").to_owned()
}

#[test]
fn a_plugin_is_installed_changed_trusted_again_and_removed() {
    let home = CliHome::with("# mine\nmodel = 'm'\n");
    let folder = folder();
    let output = done(&home, &["plugin", "add", folder.path()]);
    for expected in [
        "org.example 1.2.3 in ",
        "runs: python3 main.py",
        "may ask for: workspace.read",
        "trusted: 2 files, sha256:",
        "installed the plugin `org.example` in HOME/config.toml",
    ] {
        assert!(output.err.contains(expected), "{expected}: {}", output.err);
    }
    assert!(home.text().starts_with("# mine\nmodel = 'm'\n"));
    assert_eq!(state(&home), "enabled");
    // A file that nothing names counts as well.
    fs::write(folder.0.path().join("data.json"), "{}").expect("a file");
    assert_eq!(state(&home), "untrusted");
    let text = done(&home, &["plugin", "list"]).out;
    assert!(text.contains("raddle plugin trust org.example"), "{text}");
    done(&home, &["plugin", "trust", ID]);
    assert_eq!(state(&home), "enabled");
    let output = done(&home, &["plugin", "revoke", ID]);
    let expected = "no permission of the plugin `org.example` is approved";
    assert!(output.err.contains(expected), "{}", output.err);
    let error = refused(&home, &["plugin", "revoke", ID, "workspace.read"]);
    assert!(error.contains("`workspace.read` of the plugin"), "{error}");
    done(&home, &["plugin", "disable", ID]);
    assert_eq!(state(&home), "disabled");
    done(&home, &["plugin", "enable", ID]);
    assert_eq!(state(&home), "enabled");
    fs::remove_file(folder.0.path().join("plugin.toml")).expect("a file");
    assert_eq!(state(&home), "unusable");
    done(&home, &["plugin", "remove", ID]);
    assert_eq!(home.text().trim_end(), "# mine\nmodel = 'm'");
    assert!(folder.0.path().join("main.py").exists());
    let output = done(&home, &["plugin", "list"]);
    assert!(
        output.err.contains("no plugin is installed"),
        "{}",
        output.err
    );
}

/// A user who removes the entry by hand leaves the rest.
#[test]
fn all_of_an_earlier_installation_ends_with_a_new_one() {
    let home = CliHome::new();
    let folder = folder();
    let files = home.config().with_file_name("plugins");
    fs::create_dir_all(&files).expect("a folder");
    let files = ["permissions", "state"].map(|it| files.join(format!("{ID}.{it}.json")));
    for command in ["add", "remove", "add"] {
        let argument = if command == "add" { folder.path() } else { ID };
        for file in &files {
            fs::write(file, "{}").expect("a file");
        }
        if command == "add" {
            let decision = format!("[hooks.state.'{ID}:pre_tool_use:a']\nenabled = false\n");
            fs::write(home.config(), decision).expect("a configuration");
        }
        done(&home, &["plugin", command, argument]);
        assert!(files.iter().all(|it| !it.exists()), "{command}");
        assert!(!home.text().contains("pre_tool_use"), "{}", home.text());
    }
}

#[test]
fn an_id_is_installed_once() {
    let home = CliHome::new();
    let (first, second) = (folder(), folder());
    done(&home, &["plugin", "add", first.path()]);
    let error = refused(&home, &["plugin", "add", first.path()]);
    assert!(error.contains("is installed already"), "{error}");
    let error = refused(&home, &["plugin", "add", second.path()]);
    let expected = format!(
        "a plugin with the id `{ID}` is installed from {}",
        first.path()
    );
    assert!(error.contains(&expected), "{error}");
    // A folder whose manifest got another id runs no more, and cannot be trusted.
    let manifest = fs::read_to_string(first.0.path().join("plugin.toml")).expect("a manifest");
    let manifest = manifest.replace(ID, "org.other");
    fs::write(first.0.path().join("plugin.toml"), manifest).expect("a manifest");
    assert_eq!(state(&home), "untrusted");
    let error = refused(&home, &["plugin", "trust", ID]);
    assert!(error.contains("has the id `org.other` now"), "{error}");
}

#[test]
fn folders_that_cannot_be_pinned_and_unknown_ids_are_refused() {
    let home = CliHome::new();
    let folder = folder();
    std::os::unix::fs::symlink("/etc/hostname", folder.0.path().join("link")).expect("a link");
    let error = refused(&home, &["plugin", "add", folder.path()]);
    assert!(error.contains("leads out of the folder"), "{error}");
    let error = refused(&home, &["plugin", "add", "/nonexistent"]);
    assert!(error.contains("name the folder of a plugin"), "{error}");
    for command in ["enable", "disable", "trust", "revoke", "remove"] {
        let error = refused(&home, &["plugin", command, "org.none"]);
        assert!(error.contains("no plugin has the id `org.none`"), "{error}");
    }
    // An entry of Codex is none of Raddle's plugins, and a relative path is never used.
    let config = "[plugins.'mail@market']\nenabled = true\n[plugins.'org.example']\npath = 'x'\n";
    let home = CliHome::with(config);
    assert_eq!(state(&home), "unusable");
}
