//! Actions of a line, in the terms of clients.

use raddle_core::Action;
use raddle_tools::shell::{actions, parse_line};

fn described(line: &str) -> Vec<String> {
    let one = |action: Action| match action {
        Action::Read { name, path, .. } => format!("read {name} {path}"),
        Action::List { path, .. } => format!("list {}", path.unwrap_or_default()),
        Action::Search { query, path, .. } => {
            format!(
                "search {} {}",
                query.unwrap_or_default(),
                path.unwrap_or_default()
            )
        }
        Action::Other { command } => format!("other {command}"),
    };
    actions(&parse_line(line), "/p")
        .into_iter()
        .map(one)
        .collect()
}

#[test]
fn parts_of_a_line_become_actions() {
    let cases: &[(&str, &[&str])] = &[
        ("cat a/b.rs", &["read b.rs /p/a/b.rs"]),
        ("cat /x/b.rs", &["read b.rs /x/b.rs"]),
        ("sed -n 1,20p a.rs", &["read a.rs /p/a.rs"]),
        ("head -n 5 a.rs", &["read a.rs /p/a.rs"]),
        ("tail -n +5 a.rs", &["read a.rs /p/a.rs"]),
        ("nl -b a a.rs | sed -n 1,5p", &["read a.rs /p/a.rs"]),
        ("cat a.rs | head -n 5", &["read a.rs /p/a.rs"]),
        ("cd sub && cat a.rs", &["read a.rs /p/sub/a.rs"]),
        ("bash -lc 'cat a.rs'", &["read a.rs /p/a.rs"]),
        ("ls", &["list "]),
        ("ls -la crates/x/src", &["list x"]),
        ("tree -L 2 crates", &["list crates"]),
        ("rg --files src/a | head -n 50", &["list a"]),
        ("rg TODO", &["search TODO "]),
        ("rg -n -g '*.rs' TODO crates/a", &["search TODO a"]),
        ("grep -rn TODO a", &["search TODO a"]),
        ("grep -e TODO a", &["search TODO a"]),
        ("git grep TODO", &["search TODO "]),
        ("git ls-files a", &["list a"]),
        ("find a -name '*.rs'", &["search *.rs a"]),
        ("find . -type f | wc -l", &["list ."]),
        ("fd main a", &["search main a"]),
        ("cat a && rg b c", &["read a /p/a", "search b c"]),
        ("cat a; cat a", &["read a /p/a"]),
        ("echo shellcmd", &["other echo shellcmd"]),
        ("cat a && touch b", &["other cat a && touch b"]),
        ("cat a > b", &["other cat a > b"]),
        ("wc -l a", &["other wc -l a"]),
        (
            "for i in 1 2; do echo $i; done",
            &["other for i in 1 2; do echo $i; done"],
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(described(line), *expected, "{line}");
    }
}
