//! `raddle completions` and `raddle man`.

use super::CliHome;

#[test]
fn shells_complete_commands_and_options() {
    let home = CliHome::new();
    for shell in ["bash", "zsh", "fish"] {
        let output = home.run(&["completions", shell]);
        assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
        for word in ["app-server", "doctor", "origin"] {
            assert!(output.out.contains(word), "{shell}: {word}");
        }
    }
}

/// Bash, which every machine that runs these tests has, accepts its script.
#[test]
fn bash_accepts_its_script() {
    let home = CliHome::new();
    let script = home.run(&["completions", "bash"]).out;
    let test = format!(
        "{script}\nCOMP_WORDS=(raddle config l)\nCOMP_CWORD=2\n_raddle raddle l config\necho \"${{COMPREPLY[*]}}\"\n"
    );
    // The script is too long for an argument.
    let file = home.home.path().join("completions.bash");
    std::fs::write(&file, test).expect("a script");
    let output = std::process::Command::new("bash")
        .arg("--norc")
        .arg(&file)
        .output()
        .expect("bash");
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        out.trim(),
        "list",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn there_is_a_page_for_each_command() {
    let home = CliHome::new();
    let out = home.home.path().join("man");
    let output = home.run(&["man", "--out", out.to_str().expect("a path")]);
    assert_eq!(output.code, Some(0), "{}", output.err);
    for name in ["raddle.1", "raddle-app-server.1", "raddle-config-set.1"] {
        let page = std::fs::read_to_string(out.join(name)).expect(name);
        assert!(page.contains(".TH"), "{name}");
    }
}
