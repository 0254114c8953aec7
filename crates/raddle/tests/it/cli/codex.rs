//! The command line of Codex, which clients start: version, features, models, and the shim.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::CliHome;

/// Runs a program and returns its stdout.
fn printed(program: &Path, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output();
    let output = output.expect("it runs");
    String::from_utf8(output.stdout).expect("text")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

fn own_binary() -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_raddle"));
    binary.canonicalize().expect("a binary")
}

#[test]
fn the_version_is_that_of_the_contract_under_the_name_codex() {
    let home = CliHome::new();
    let link = home.home.path().join("codex");
    std::os::unix::fs::symlink(own_binary(), &link).expect("a link");
    assert_eq!(printed(&link, &["--version"]), "codex-cli 0.166.0\n");
    let own = printed(&own_binary(), &["--version"]);
    assert_eq!(own, concat!("raddle ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn features_are_accepted_with_a_warning() {
    let home = CliHome::new();
    for words in [
        &["app-server", "--enable", "one", "--enable", "two"][..],
        &["app-server", "--enable", "one", "--disable", "two"],
        &["--enable", "one", "--enable", "two", "app-server"],
    ] {
        let output = home.run(words);
        assert_eq!(output.code, Some(0), "{words:?}: {}", output.err);
        for feature in ["one", "two"] {
            let is_about = |it: &&str| {
                it.contains("have no effect") && it.contains(&format!("\"feature\":\"{feature}\""))
            };
            let count = output.err.lines().filter(is_about).count();
            assert_eq!(count, 1, "{words:?}: {}", output.err);
        }
    }
}

#[test]
fn debug_models_prints_the_models_in_the_form_of_codex() {
    let home = CliHome::with(
        "model = 'openai/one'\nreview_model = 'anthropic/two'\nmodel_context_window = 1000\n",
    );
    let output = home.run(&["debug", "models", "--bundled"]);
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
    let json: Value = serde_json::from_str(&output.out).expect("JSON");
    let models = json["models"].as_array().expect("models");
    let slugs: Vec<&Value> = models.iter().map(|it| &it["slug"]).collect();
    assert_eq!(slugs, [&json!("one"), &json!("anthropic/two")]);
    assert_eq!(models[0]["visibility"], "list", "{json}");
    assert_eq!(models[0]["context_window"], 1000, "{json}");
    assert_eq!(models[1]["context_window"], Value::Null, "{json}");
    let efforts = &models[0]["supported_reasoning_levels"];
    assert_eq!(efforts[0]["effort"], "low", "{json}");

    let output = CliHome::new().run(&["debug", "models"]);
    let printed = (output.code, output.out.as_str());
    assert_eq!(printed, (Some(0), "{\"models\":[]}\n"), "{}", output.err);
}

#[test]
fn a_shim_is_a_link_that_replaces_only_its_own_kind() {
    let home = CliHome::new();
    let folder = home.home.path().join("bin");
    let install = |more: &[&str]| {
        let words = [&["shim", "install", "--dir", text(&folder)], more].concat();
        home.run(&words)
    };
    let link = folder.join("codex");
    // Again, over its own link.
    for _ in 0..2 {
        let output = install(&[]);
        assert_eq!(output.code, Some(0), "{}", output.err);
        assert!(
            output.err.contains("export PATH=HOME/bin:\"$PATH\""),
            "{}",
            output.err
        );
        assert_eq!(link.canonicalize().expect("a link"), own_binary());
    }
    assert_eq!(printed(&link, &["--version"]), "codex-cli 0.166.0\n");

    fs::remove_file(&link).expect("it is removed");
    fs::write(&link, "another program").expect("it is written");
    let output = install(&[]);
    assert_eq!(output.code, Some(1));
    assert!(output.err.contains("--force"), "{}", output.err);
    let kept = fs::read_to_string(&link).expect("it is kept");
    assert_eq!(kept, "another program");
    let output = install(&["--force"]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    assert_eq!(link.canonicalize().expect("a link"), own_binary());
    let entries = fs::read_dir(&folder).expect("a folder").count();
    assert_eq!(entries, 1);
}

#[test]
fn a_shim_replaces_no_other_file_and_not_the_program() {
    let home = CliHome::new();
    let folder = home.home.path().join("bin");
    fs::create_dir(&folder).expect("a folder");
    let beside = folder.join("codex.new");
    fs::write(&beside, "a file of the user").expect("it is written");
    let output = home.run(&["shim", "install", "--dir", text(&folder)]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    let kept = fs::read_to_string(&beside).expect("it is kept");
    assert_eq!(kept, "a file of the user");

    // A hard link is a program of that name, and must be on the same file system.
    let binary = own_binary();
    let beside = binary.parent().expect("a folder");
    let named = tempfile::tempdir_in(beside).expect("a folder");
    let program = named.path().join("codex");
    fs::hard_link(&binary, &program).expect("a hard link");
    let mut install = Command::new(&program);
    install.args(["shim", "install", "--force", "--dir", text(named.path())]);
    let output = install.output().expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(program.is_file() && !program.is_symlink(), "{output:?}");
    let err = String::from_utf8(output.stderr).expect("text");
    assert!(err.contains("is this program itself"), "{err}");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_shim_is_where_the_agent_host_of_vs_code_looks() {
    let home = CliHome::new();
    let root = home.home.path().join("sdk");
    let output = home.run(&["shim", "install", "--vscode", text(&root)]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    assert!(output.err.contains("SDK_ROOT=HOME/sdk"), "{}", output.err);
    let link = root
        .join("node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex");
    assert_eq!(printed(&link, &["--version"]), "codex-cli 0.166.0\n");
    let output = home.run(&["shim", "install"]);
    assert_eq!(output.code, Some(2), "{}", output.err);
}
