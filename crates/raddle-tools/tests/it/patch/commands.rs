//! Command lines that are nothing but a patch.

use raddle_tools::patch::{in_argv, in_command};

const PATCH: &str = "*** Begin Patch\n*** Delete File: a\n*** End Patch";

#[test]
fn plain_forms_are_recognised() {
    let cases = [
        ("apply_patch <<'EOF'\nP\nEOF", None),
        ("apply_patch <<\"EOF\"\nP\nEOF\n", None),
        ("apply_patch <<EOF\nP\nEOF", None),
        ("applypatch << 'PATCH'\nP\nPATCH", None),
        ("apply_patch<<'EOF'\nP\nEOF", None),
        ("  apply_patch <<'EOF'\nP\nEOF\n\n", None),
        ("cd src && apply_patch <<'EOF'\nP\nEOF", Some("src")),
        (
            "cd /a/b-c_d.e && apply_patch <<'EOF'\nP\nEOF",
            Some("/a/b-c_d.e"),
        ),
        (
            "cd 'my folder' && apply_patch <<'EOF'\nP\nEOF",
            Some("my folder"),
        ),
        (
            "cd \"my folder\" && apply_patch <<'EOF'\nP\nEOF",
            Some("my folder"),
        ),
    ];
    for (line, cwd) in cases {
        let embedded = in_command(&line.replace("\nP\n", &format!("\n{PATCH}\n")));
        let embedded = embedded.expect(line);
        assert_eq!(embedded.cwd.as_deref(), cwd, "{line}");
        assert_eq!(embedded.patch.trim_end(), PATCH, "{line}");
    }
}

#[test]
fn everything_else_is_a_command() {
    let cases = [
        "apply_patch",
        "apply_patch <<'EOF'",
        "apply_patch <<'EOF'\nP",
        "apply_patch <<'EOF'\nP\nEOF\nrm -rf .",
        "apply_patch <<'EOF'\nP\nEOF\nrm -rf .\nEOF",
        "apply_patch <<'EOF' && rm -rf .\nP\nEOF",
        "apply_patch <<'EOF' | tee log\nP\nEOF",
        "apply_patch <<'EOF' > log\nP\nEOF",
        "apply_patch --dry-run <<'EOF'\nP\nEOF",
        "rm -rf . && apply_patch <<'EOF'\nP\nEOF",
        "cd a; apply_patch <<'EOF'\nP\nEOF",
        "cd a || apply_patch <<'EOF'\nP\nEOF",
        "cd a && cd b && apply_patch <<'EOF'\nP\nEOF",
        "cd $(id) && apply_patch <<'EOF'\nP\nEOF",
        "cd \"$HOME\" && apply_patch <<'EOF'\nP\nEOF",
        "cd ~ && apply_patch <<'EOF'\nP\nEOF",
        "cd - && apply_patch <<'EOF'\nP\nEOF",
        "cd a b && apply_patch <<'EOF'\nP\nEOF",
        "cd 'a' 'b' && apply_patch <<'EOF'\nP\nEOF",
        "cd * && apply_patch <<'EOF'\nP\nEOF",
        "cd  && apply_patch <<'EOF'\nP\nEOF",
        "apply_patch <<EOF\n+$(id)\nEOF",
        "apply_patch <<EOF\n+`id`\nEOF",
        "apply_patch <<EOF\n+a\\\nEOF",
        "apply_patch <<-'EOF'\nP\nEOF",
        "apply_patch <<<'EOF'\nP\nEOF",
        "apply_patch <<'EOF\nP\nEOF",
        "apply_patch <<'E F'\nP\nE F",
        "PATH=. apply_patch <<'EOF'\nP\nEOF",
        "./apply_patch <<'EOF'\nP\nEOF",
        "apply_patch <<'EOF'\nP\n EOF",
    ];
    for line in cases {
        let line = line.replace("\nP\n", &format!("\n{PATCH}\n"));
        assert_eq!(in_command(&line), None, "{line}");
    }
}

#[test]
fn a_patch_as_an_argument() {
    let argv =
        |words: &[&str]| in_argv(&words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
    let line = format!("apply_patch <<'EOF'\n{PATCH}\nEOF");
    for words in [
        vec!["apply_patch", PATCH],
        vec!["applypatch", PATCH],
        vec!["bash", "-lc", &line],
        vec!["/bin/sh", "-c", &line],
    ] {
        let embedded = argv(&words).expect("a patch");
        assert_eq!(embedded.patch.trim_end(), PATCH);
    }
    for words in [
        vec!["apply_patch"],
        vec!["apply_patch", PATCH, "more"],
        vec!["bash", "-x", &line],
        vec!["fish", "-c", &line],
        vec!["bash", "-c", "ls"],
    ] {
        assert_eq!(argv(&words), None, "{words:?}");
    }
}
