//! Runs random lines in real shells: the parser must have found every program that a shell runs, or
//! the line could be any command.
//!
//! Only lines without a finding are run, in a folder of their own and with two programs in the
//! `PATH`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use ::support::Rng;
use raddle_core::policy::UNKNOWN;
use raddle_tools::shell::{parse_line, parse_words};

use super::random::rng;

/// Number of lines of an ordinary run, and the variables for more and for other lines.
const LINES: u64 = 500;
const VARIABLE: &str = "RADDLE_SHELL_DIFFERENTIAL";
const FIRST: &str = "RADDLE_SHELL_FIRST";

const SHELLS: [&str; 2] = ["bash", "dash"];

/// Single characters, some of which are inserted into a line at random.
const MARKS: &[&str] = &[
    "'", "\"", "`", "\\", "$", "(", ")", "{", "}", "#", " ", " #", ";", "\n", "\\\n", "!", "=",
    "[", "]", "<", "&", "|", "<<E\n", "\nE\n", "$(", "${", "((", "))", "\\`", "*", "~", ",", "-- ",
    "\t",
];

/// Text that may occur within a word, and that the shell often expands to nothing.
const WITHIN: &[&str] = &[
    "''", "\"\"", "``", "`:`", "$(:)", "${y}", "$y", "$*", "$@", "\"$@\"", "$1", "$!", "$-", "$''",
    "$\"\"", "\\\n", "\"\\\n\"", "\\", "{,}", "*", "[z]", "`#`", "` `", "\"`:`\"", "${y-}", "\\ ",
    "$(())", "~", "<(:)", "'`'",
];

/// Programs that read a file `f` with the name of the program.
const READERS: &[&str] = &[
    "bash",
    "dash",
    "sh",
    "bash -s",
    "xargs",
    "xargs env",
    "xargs -I X env X",
    "xargs -i {}",
    "xargs -I% sh -c %",
    "xargs command",
    "cat",
    "source /dev/stdin",
    ". /dev/fd/0",
];

struct ScriptMaker(Rng);

impl ScriptMaker {
    fn one<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.0.index(choices.len())]
    }

    fn command(&mut self, depth: u64) -> String {
        if depth == 0 {
            return self.one(&["zzz", "zzz", ":", "echo a"]).to_owned();
        }
        let depth = depth - 1;
        match self.0.below(32) {
            26 => self.broken("zzz"),
            27 => {
                let name = self.one(&["bash -c", "eval", "env", "command", "exec", "sh -c"]);
                let (name, rest) = name.split_once(' ').unwrap_or((name, ""));
                format!("{} {rest} {}", self.broken(name), self.broken("zzz"))
            }
            28 => format!("{} {}", self.command(depth), self.broken("zzz")),
            29 => format!("{} {}", self.one(READERS), self.redirect(depth)),
            30 => format!(
                "echo zzz | {} {}",
                self.one(READERS),
                self.one(&["", "0<&0", "2>&1", "0<&1", "3<&0"])
            ),
            31 => format!("{} {}", self.redirect(depth), self.command(depth)),
            0..=3 => format!("echo {}", self.word(depth)),
            4 => format!("echo {} {}", self.word(depth), self.word(depth)),
            5 => format!("x={}", self.word(depth)),
            6 => format!("eval {}", self.word(depth)),
            7 => format!("cat <<E\n{}\nE\n", self.quoted(depth)),
            8 => format!("cat <<'E'\n{}\nE\n{}", self.text(), self.command(depth)),
            9 => format!("({})", self.command(depth)),
            10 => format!("{{ {}; }}", self.command(depth)),
            11 => format!(
                "if {}; then {}; fi",
                self.command(depth),
                self.command(depth)
            ),
            12 => format!(
                "case {} in {}) {};; esac",
                self.word(depth),
                self.one(&["*", "a|*", "(*"]),
                self.command(depth)
            ),
            13 => format!(
                "{}{}",
                self.one(&[
                    "! ", "time ", "time -p ", "time ! ", "coproc ", "builtin ", "command "
                ]),
                self.command(depth)
            ),
            14 => format!(
                "for {} in {}; do {}; done",
                self.one(&["x", "SECONDS", "PS4"]),
                self.word(depth),
                self.command(depth)
            ),
            15 => format!(
                "[[ {} {} {} ]]",
                self.word(depth),
                self.one(&["==", "-eq", "=~", "<"]),
                self.word(depth)
            ),
            16 => format!("(({}))", self.arithmetic(depth)),
            17..=18 => format!(
                "{}{}{}",
                self.command(depth),
                self.one(&["; ", " | ", " && ", "\n", " & "]),
                self.command(depth)
            ),
            19 => format!(
                "{} # {}\n{}",
                self.command(depth),
                self.text(),
                self.command(depth)
            ),
            20 => format!(
                "echo \\{}#{}",
                self.one(&[" ", ";", "\t", "a"]),
                self.text()
            ),
            21 => format!("cat <<< {}", self.word(depth)),
            22 => format!("f() {{ {}; }}; f", self.command(depth)),
            23 => format!("while {}; do break; done", self.command(depth)),
            24 => format!(
                "{} {}",
                self.one(&[
                    "bash -c", "eval --", "env -S", "trap --", "x=1 eval", "exec"
                ]),
                self.word(depth)
            ),
            _ => format!(
                "{} {}{}",
                self.command(depth),
                self.one(&[">", "2>", "<", ">>"]),
                self.word(depth)
            ),
        }
    }

    /// Returns a name with text inserted, in quotes of several kinds.
    fn broken(&mut self, name: &str) -> String {
        let mut out = String::new();
        for letter in name.chars() {
            if self.0.below(3) == 0 {
                out.push_str(self.one(WITHIN));
            }
            match self.0.below(12) {
                0 => out.push_str(&format!("'{letter}'")),
                1 => out.push_str(&format!("\"{letter}\"")),
                2 => out.push_str(&format!("\\{letter}")),
                3 => out.push_str(&format!("$'{letter}'")),
                4 => out.push_str(&format!("$\"{letter}\"")),
                _ => out.push(letter),
            }
        }
        if self.0.below(5) == 0 {
            out.push_str(self.one(WITHIN));
        }
        out
    }

    fn redirect(&mut self, depth: u64) -> String {
        let operator = self.one(&[
            "<", "0<", "0< ", "00<", "3<", "0<<<", "<<<", "0<>", "{v}<", "&>", ">&", "1>", "2>>",
            "0<&",
        ]);
        let target = match self.0.below(6) {
            0 => self.word(depth),
            1 => "<(echo zzz)".to_owned(),
            2 => "zzz".to_owned(),
            _ => "f".to_owned(),
        };
        format!("{operator}{target}")
    }

    fn word(&mut self, depth: u64) -> String {
        let count = 1 + self.0.below(2);
        (0..count).map(|_| self.part(depth)).collect()
    }

    fn part(&mut self, depth: u64) -> String {
        if depth == 0 {
            return self.one(&["a", "b#", "zzz", "\\ ", "$x", "''"]).to_owned();
        }
        let depth = depth - 1;
        match self.0.below(18) {
            16 => self.one(WITHIN).to_owned(),
            17 => format!("$\"{}\"", self.quoted(depth)),
            0..=1 => format!("'{}'", self.text()),
            2..=4 => format!("\"{}\"", self.quoted(depth)),
            5 => format!("$'{}'", self.text()),
            6 => format!("\\{}", self.one(MARKS)),
            7..=8 => self.braces(depth, false),
            9 => self.backquotes(depth),
            10 => format!("$({})", self.command(depth)),
            11 => format!("<({})", self.command(depth)),
            12 => format!("$(({}))", self.arithmetic(depth)),
            13 => format!("$[{}]", self.arithmetic(depth)),
            14 => format!("{{a,{}}}", self.part(depth)),
            _ => self
                .one(&["#", "a", "$", "*", "zzz", "a=b", "-c"])
                .to_owned(),
        }
    }

    fn quoted(&mut self, depth: u64) -> String {
        let count = 1 + self.0.below(3);
        let mut out = String::new();
        for _ in 0..count {
            let part = match depth {
                0 => self.one(&["a", "'", "$x", " "]).to_owned(),
                _ => match self.0.below(8) {
                    0..=2 => self.braces(depth - 1, true),
                    3 => format!("$({})", self.command(depth - 1)),
                    4 => self.backquotes(depth - 1),
                    5 => format!("$(({}))", self.arithmetic(depth - 1)),
                    _ => self
                        .one(&["'", "\\\"", "\\$", "\\`", "#", " #", "a", ";", "\\\\"])
                        .to_owned(),
                },
            };
            out.push_str(&part);
        }
        out
    }

    fn braces(&mut self, depth: u64, is_quoted: bool) -> String {
        let operator = self.one(&[
            "x:-", "x-", "x=", "x:+", "y:=", "x#", "x%", "x/a/", "x//", "x^", "@:-", "x[0]:-",
            "#x", "!x", "x:", "1-", "x@P:-",
        ]);
        let inner = match self.0.below(4) {
            0 => format!("'{}'", self.text()),
            1 if is_quoted => self.quoted(depth),
            _ => self.word(depth),
        };
        format!("${{{operator}{inner}}}")
    }

    fn backquotes(&mut self, depth: u64) -> String {
        let inner = self.command(depth);
        let inner = match self.0.below(3) {
            0 => inner,
            _ => inner.replace('\\', "\\\\").replace('`', "\\`"),
        };
        format!("`{inner}`")
    }

    fn arithmetic(&mut self, depth: u64) -> String {
        let inner = self.one(&[
            "1",
            "zzz",
            "(zzz) | (cat)",
            "zzz) | (cat",
            "a[$(zzz)]",
            "1<<2",
            "x",
            "'a[$(zzz)]'",
        ]);
        match self.0.below(3) {
            0 => self.word(depth),
            _ => inner.to_owned(),
        }
    }

    fn text(&mut self) -> String {
        self.one(&[
            "$(zzz)",
            "`zzz`",
            ";zzz",
            "zzz",
            "\nzzz\n",
            "a[$(zzz)]",
            "\";zzz;\"",
            "}\";zzz;\"",
            ")zzz",
            "\\",
        ])
        .to_owned()
    }

    fn line(&mut self) -> String {
        let depth = 1 + self.0.below(4);
        let mut line = self.command(depth);
        for _ in 0..self.0.below(4).saturating_sub(1) {
            let at = self.0.below(line.len() as u64 + 1) as usize;
            if line.is_char_boundary(at) {
                let mark = self.one(MARKS);
                line.insert_str(at, mark);
            }
        }
        line
    }
}

fn finds_program(shell: &str, line: &str) -> bool {
    let script = match shell {
        "bash" => parse_line(line),
        shell => parse_words(&[shell, "-c", line].map(str::to_owned)),
    };
    let is_program = |it: &String| it.rsplit('/').next() == Some("zzz");
    // A file that a shell reads is known by its name, and is no command.
    let reads = |it: &Vec<String>| [".", "source", "bash", "dash", "sh"].contains(&it[0].as_str());
    let is_found = |it: &Vec<String>| {
        it[0].contains(UNKNOWN) || is_program(&it[0]) || reads(it) && it.iter().any(is_program)
    };
    script.commands.iter().any(is_found)
}

/// Whether a shell runs the program in this line.
fn runs(shell: &str, line: &str, folder: &Path) -> bool {
    let mark = folder.join("mark");
    let work = folder.join("work");
    fs::create_dir_all(&work).expect("a folder");
    fs::write(work.join("f"), "zzz\n").expect("a file");
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "0.5", shell, "-c", line]);
    command
        .current_dir(&work)
        .env_clear()
        .env("PATH", format!("{}:/nowhere", folder.join("bin").display()));
    command.stdin(Stdio::null()).stderr(Stdio::null());
    // A process beside the shell keeps its end of the pipe open until it exits.
    command.output().expect("a shell");
    let is_run = mark.exists();
    let _ = fs::remove_file(mark);
    let _ = fs::remove_dir_all(work);
    is_run
}

#[test]
fn programs_that_shells_run_are_found() {
    let lines = std::env::var(VARIABLE).map_or(LINES, |it| it.parse().expect("a number"));
    let first = std::env::var(FIRST).map_or(0, |it| it.parse().expect("a number"));
    let folder = tempfile::tempdir().expect("a folder");
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).expect("a folder");
    let program = bin.join("zzz");
    let script = format!(
        "#!/bin/sh\n: > '{}'\n",
        folder.path().join("mark").display()
    );
    fs::write(&program, script).expect("a program");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a program");
    let shells: Vec<&str> = SHELLS
        .into_iter()
        .filter(|it| which(it).is_some())
        .collect();
    for name in ["bash", "dash", "sh", "cat", "env", "timeout", "xargs"] {
        which(name).map(|it| symlink(it, bin.join(name)));
    }
    let (mut wrong, mut count) = (Vec::new(), 0);
    for number in first..first + lines {
        let line = ScriptMaker(rng(number)).line();
        for shell in &shells {
            if finds_program(shell, &line) {
                continue;
            }
            count += 1;
            if runs(shell, &line, folder.path()) {
                let miss = format!("{number}: {shell} runs it in {line:?}");
                eprintln!("{miss}");
                wrong.push(miss);
            }
        }
    }
    eprintln!("figure: {lines} lines, {count} runs of shells in which we saw no program");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn which(name: &str) -> Option<std::path::PathBuf> {
    let folders = ["/bin", "/usr/bin", "/usr/local/bin"].into_iter();
    let mut files = folders.map(|it| Path::new(it).join(name));
    files.find(|it| it.exists())
}
