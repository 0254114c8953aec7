//! `raddle completions` and `raddle man`.

use super::CliHome;

#[test]
fn shells_complete_what_there_is() {
    let place = CliHome::new();
    for shell in ["bash", "zsh", "fish"] {
        let went = place.run(&["completions", shell]);
        assert_eq!((went.code, went.err.as_str()), (Some(0), ""));
        for word in ["app-server", "doctor", "origin"] {
            assert!(went.out.contains(word), "{shell}: {word}");
        }
    }
}

/// The one shell that is on every machine that runs this reads what is written for it.
#[test]
fn bash_reads_it() {
    let place = CliHome::new();
    let script = place.run(&["completions", "bash"]).out;
    let test = format!(
        "{script}\nCOMP_WORDS=(raddle config l)\nCOMP_CWORD=2\n_raddle raddle l config\necho \"${{COMPREPLY[*]}}\"\n"
    );
    let ran = std::process::Command::new("bash")
        .args(["--norc", "-c", &test])
        .output()
        .expect("bash");
    let out = String::from_utf8_lossy(&ran.stdout);
    assert_eq!(
        out.trim(),
        "list",
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

#[test]
fn there_is_a_page_for_each_command() {
    let place = CliHome::new();
    let out = place.home.path().join("man");
    let went = place.run(&["man", "--out", out.to_str().expect("a path")]);
    assert_eq!(went.code, Some(0), "{}", went.err);
    for name in ["raddle.1", "raddle-app-server.1", "raddle-config-set.1"] {
        let page = std::fs::read_to_string(out.join(name)).expect(name);
        assert!(page.contains(".TH"), "{name}");
    }
}
