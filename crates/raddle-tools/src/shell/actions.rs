//! Guesses a command's action in the terms of clients: it reads, lists or searches.

use raddle_core::Action;
use raddle_core::policy::{ParsedScript, is_shell};

use super::quoted;

/// Returns the actions of a script that runs in a folder; a single `Other` if any part is unknown.
pub fn actions(script: &ParsedScript, cwd: &str) -> Vec<Action> {
    let other = || {
        vec![Action::Other {
            command: script.line.clone(),
        }]
    };
    if !script.plain {
        return other();
    }
    // A shell is listed in addition to the commands that it runs.
    let is_part = |words: &&Vec<String>| !is_shell(words);
    let parts: Vec<&Vec<String>> = script.commands.iter().filter(is_part).collect();
    let mut cwd = cwd.to_owned();
    let mut actions: Vec<Action> = Vec::new();
    for words in &parts {
        if words[0] == "cd" && parts.len() > 1 {
            cwd = joined(&cwd, words.get(1).map_or("", String::as_str));
            continue;
        }
        if parts.len() > 1 && is_helper(words) {
            continue;
        }
        match action(words, &cwd) {
            Some(action) if actions.last() == Some(&action) => {}
            Some(action) => actions.push(action),
            None => return other(),
        }
    }
    if actions.is_empty() { other() } else { actions }
}

fn action(words: &[String], cwd: &str) -> Option<Action> {
    let (name, rest) = words.split_first()?;
    let command = quoted(words);
    let read = |file: &str| Action::Read {
        command: command.clone(),
        name: short(file),
        path: joined(cwd, file),
    };
    let list = |valued: &[&str]| Action::List {
        command: command.clone(),
        path: operands(rest, valued).first().map(|it| short(it)),
    };
    let search = |query: Option<&str>, path: Option<&str>| Action::Search {
        command: command.clone(),
        query: query.map(str::to_owned),
        path: path.map(short),
    };
    match name.as_str() {
        "cat" | "bat" | "less" | "more" | "nl" => {
            let files = operands(rest, &["-w", "-s", "-v", "-b", "--line-range", "-r"]);
            (files.len() == 1).then(|| read(files[0]))
        }
        "head" | "tail" => {
            let files = operands(rest, &["-n", "-c", "--lines", "--bytes"]);
            (files.len() == 1).then(|| read(files[0]))
        }
        "sed" => match rest {
            [quiet, range, file] if quiet == "-n" && is_range(range) => Some(read(file)),
            _ => None,
        },
        "ls" | "eza" | "exa" => Some(list(&["-I", "-w", "--ignore", "--width", "--block-size"])),
        "tree" => Some(list(&["-L", "-P", "-I"])),
        "du" => Some(list(&["-d", "--max-depth", "-B"])),
        "rg" | "rga" if rest.iter().any(|it| it == "--files") => Some(list(RG_VALUED)),
        "rg" | "rga" | "ag" | "ack" | "pt" => {
            let operands = operands(rest, RG_VALUED);
            Some(search(operands.first().copied(), operands.get(1).copied()))
        }
        "grep" | "egrep" | "fgrep" => Some(grep(rest, search)),
        "git" => match rest {
            [sub, rest @ ..] if sub == "grep" => Some(grep(rest, search)),
            [sub, rest @ ..] if sub == "ls-files" => Some(Action::List {
                command: command.clone(),
                path: operands(rest, &[]).first().map(|it| short(it)),
            }),
            _ => None,
        },
        "fd" => match operands(rest, &["-t", "-e", "-E", "-d", "--type", "--extension"])[..] {
            [] => Some(list(&[])),
            [query] => Some(search(Some(query), None)),
            [query, path, ..] => Some(search(Some(query), Some(path))),
        },
        "find" => {
            let path = rest
                .iter()
                .find(|it| !it.starts_with(['-', '!', '(']))
                .map(String::as_str);
            let is_name =
                |it: &String| ["-name", "-iname", "-path", "-regex"].contains(&it.as_str());
            let query = rest
                .iter()
                .position(is_name)
                .and_then(|at| rest.get(at + 1));
            Some(match query {
                Some(query) => search(Some(query), path),
                None => Action::List {
                    command: command.clone(),
                    path: path.map(short),
                },
            })
        }
        _ => None,
    }
}

const RG_VALUED: &[&str] = &[
    "-g",
    "--glob",
    "--iglob",
    "-t",
    "--type",
    "-T",
    "--type-not",
    "-A",
    "-B",
    "-C",
    "-m",
    "--max-count",
    "-d",
    "--max-depth",
    "-j",
    "-M",
    "--sort",
    "--color",
];

fn grep(rest: &[String], search: impl Fn(Option<&str>, Option<&str>) -> Action) -> Action {
    let query = rest.iter().position(|it| it == "-e" || it == "--regexp");
    let named = query.and_then(|at| rest.get(at + 1)).map(String::as_str);
    let valued = [
        "-e",
        "--regexp",
        "-A",
        "-B",
        "-C",
        "-m",
        "-f",
        "--include",
        "--exclude",
        "--exclude-dir",
    ];
    let operands = operands(rest, &valued);
    match named {
        Some(query) => search(Some(query), operands.first().copied()),
        None => search(operands.first().copied(), operands.get(1).copied()),
    }
}

/// Returns the words that are neither options nor their values.
fn operands<'a>(words: &'a [String], valued: &[&str]) -> Vec<&'a str> {
    let mut operands = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            operands.extend(words.map(String::as_str));
            break;
        }
        if valued.contains(&word.as_str()) {
            words.next();
        } else if !word.starts_with('-') || word == "-" {
            operands.push(word);
        }
    }
    operands
}

/// Whether this only formats the output of another part of a pipeline.
fn is_helper(words: &[String]) -> bool {
    let rest = &words[1..];
    match words[0].as_str() {
        "wc" | "tr" | "cut" | "sort" | "uniq" | "tee" | "column" | "yes" | "printf" | "true" => {
            true
        }
        "echo" => true,
        "head" | "tail" => operands(rest, &["-n", "-c", "--lines", "--bytes"]).is_empty(),
        "nl" => operands(rest, &["-w", "-s", "-v", "-b"]).is_empty(),
        "sed" => rest.len() == 2 && rest[0] == "-n" && is_range(&rest[1]),
        "awk" => rest.len() == 1,
        _ => false,
    }
}

fn is_range(script: &str) -> bool {
    script.strip_suffix('p').is_some_and(|it| {
        let is_line =
            |it: &str| it == "$" || !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
        it.split(',').all(is_line) && it.split(',').count() <= 2
    })
}

/// Returns the last meaningful part of a path.
fn short(path: &str) -> String {
    let mut parts = path.split(['/', '\\']).rev();
    let is_meaningful =
        |it: &&str| !it.is_empty() && !["build", "dist", "node_modules", "src"].contains(it);
    parts.find(is_meaningful).unwrap_or(path).to_owned()
}

fn joined(cwd: &str, path: &str) -> String {
    let joined = std::path::Path::new(cwd).join(path);
    joined.to_string_lossy().into_owned()
}
