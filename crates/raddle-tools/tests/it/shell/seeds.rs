//! Replays the inputs of the fuzz targets, including all their findings.

use std::path::Path;
use std::{fs, panic};

use raddle_tools::shell::parse_line_counted;

use super::property;

fn replayed(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let folder = folder.join(target);
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("seeds") {
        let path = entry.expect("a seed").path();
        let input = fs::read(&path).expect("a seed that can be read");
        if panic::catch_unwind(|| check(&input)).is_err() {
            wrong.push(path.display().to_string());
        }
        count += 1;
    }
    assert!(count > 5, "only {count} inputs in {}", folder.display());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn more_is_no_looser_in_any_input_of_the_fuzz_target() {
    replayed("shell", property::more_is_no_looser);
}

#[test]
fn repeated_text_is_parsed_within_the_budget() {
    replayed("shell_time", |input| {
        property::within_bounds(&property::repeated(input));
    });
}

/// The scan for a shell that reads a heredoc compares each word before it with lists of names.
#[test]
fn each_word_before_a_heredoc_costs_work() {
    let line = |redirect: &str| {
        let words = "a ".repeat(500);
        format!("for it in {words}; do :; done {redirect}\nA\n")
    };
    let (_, without) = parse_line_counted(&line("<A"));
    let (_, with) = parse_line_counted(&line("<<A"));
    assert!(with > without + 500 * 100, "{with} after {without}");
}
