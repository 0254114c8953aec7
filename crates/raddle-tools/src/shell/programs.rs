//! Commands that programs run because of an option, an operand or a script in their own language.

use raddle_core::policy::{UNKNOWN, is_passed_on, is_shell};

use super::{awk, sed};

/// Commands that the words of a program make it run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ProgramInvocations {
    /// Lines that it passes to a shell, or splits like one.
    pub(super) scripts: Vec<String>,
    pub(super) commands: Vec<Vec<String>>,
    /// Whether it may run any command.
    pub(super) any: bool,
}

/// A program with options whose value is a line for a shell, or a program.
struct Program {
    /// Separated by spaces, like the other lists.
    names: &'static str,
    long: &'static str,
    /// Short options with such a value.
    short: &'static str,
    /// Short options with another value.
    valued: &'static str,
}

const fn program(
    names: &'static str,
    long: &'static str,
    short: &'static str,
    valued: &'static str,
) -> Program {
    Program {
        names,
        long,
        short,
        valued,
    }
}

const PROGRAMS: &[Program] = &[
    program("split gsplit", "--filter", "", "abCln"),
    program("sort gsort", "--compress-program", "", "koStT"),
    program("tar gtar bsdtar star", TAR, "IF", "bCfgHKLNTVX"),
    program("cpio gcpio", "--rsh-command --rmt-command", "", "CEFHIMOR"),
    program("rsync", "--rsh --rsync-path", "e", "BfMT"),
    program("scp sftp", "", "SD", "cFiJloPRX"),
    program("man", "--pager --preprocessor", "P", "CLmMprRsSe"),
    program("ncat", "--exec --sh-exec --lua-exec", "ec", "dgGimopqswxT"),
    program("nc netcat", "--exec", "ec", "dgGiImMoOpPqsTVwWxX"),
    program("socat", "", "", ""),
    program("npx pnpx npm", "--call", "c", "pw"),
    program("gcc g++ cc c++ clang clang++", "--wrapper", "", ""),
    program(
        "start-stop-daemon",
        "--exec --startas",
        "xa",
        "cdgIkmnpPrRsu",
    ),
    program("tcpdump", "--postrotate-command", "z", "BcCEFGijmrQsTVwWyZ"),
    program("wget", "--use-askpass", "", ""),
    program("pv", "--store-and-forward", "", ""),
    program("logrotate", "--mail", "m", "sl"),
    program("mutt neomutt", "", "e", ""),
    program("dpkg", "--pre-invoke --post-invoke --status-logger", "", ""),
    program("screen", "", "", ""),
];

const TAR: &str = "\
    --use-compress-program --to-command --info-script --new-volume-script --rsh-command --rmt-command \
    --checkpoint-action";

/// Options of ssh whose value is a line for a shell.
const SSH: &str = "proxycommand localcommand knownhostscommand xauthlocation proxyusefdpass";

/// Parts of the names of apt settings whose value is a line for a shell.
const APT: &str = "invoke pre-install-pkgs dir::bin proxy-auto-detect";

/// Programs that run commands from lines of their input.
const DATABASES: &str = "mariadb mysql psql sqlite3";
const LINE_EDITORS: &str = "ed ex red";

/// Editors with their own commands, among them `!` for a shell.
const EDITORS: &str = "ex gvim less more most nvim rview rvim vi view vim vimdiff";

fn has(list: &str, word: &str) -> bool {
    list.split(' ').any(|it| it == word)
}

/// Returns the commands that a program runs because of the words after its name.
pub(super) fn run_by(name: &str, words: &[String]) -> ProgramInvocations {
    let mut run = ProgramInvocations::default();
    if let Some(program) = PROGRAMS.iter().find(|it| has(it.names, name)) {
        run.options(program, words);
    }
    match name {
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => run.awk(words),
        "sed" | "gsed" | "ssed" => run.sed(words),
        "tar" | "gtar" | "bsdtar" => run.old_tar(words),
        "scp" => run.ssh(words, "cDFiJlPSX"),
        "sftp" => run.ssh(words, "BbcDFiJlPRSsX"),
        "ssh" | "slogin" | "autossh" => run.ssh(words, "BbcDEeFIiJLlMmOpPQRSWw"),
        "strace" => run.strace(words),
        "apt" | "apt-get" | "apt-cache" | "aptitude" => run.apt(words),
        "socat" => run.socat(words),
        "zip" => run.zip(words),
        "gdb" | "lldb" => run.debugger(words),
        "make" | "gmake" => run.make(words),
        "ip" => run.ip_exec(words),
        "capsh" => run.capsh(words),
        "start-stop-daemon" => run.daemon(words),
        "expect" | "expectk" => run.expect(words),
        name if has(DATABASES, name) => run.database(words),
        "run-parts" => run.any = true,
        name if has(EDITORS, name) => run.editor(words),
        _ => {}
    }
    run
}

/// Whether a program runs commands from lines of its input.
pub(super) fn is_reader(name: &str) -> bool {
    has(DATABASES, name) || has(LINE_EDITORS, name)
}

/// Returns the commands that such a program runs because of its input.
pub(super) fn run_from_input(name: &str, input: &str) -> ProgramInvocations {
    let mut run = ProgramInvocations::default();
    if has(DATABASES, name) {
        run.database(&[input.to_owned()]);
    } else if has(LINE_EDITORS, name) {
        run.line_editor(input);
    }
    run
}

impl ProgramInvocations {
    fn script(&mut self, line: &str) {
        if !line.trim().is_empty() {
            self.scripts.push(line.to_owned());
        }
    }

    fn options(&mut self, program: &Program, words: &[String]) {
        for (at, word) in words.iter().enumerate() {
            let next = words.get(at + 1).map(String::as_str);
            if word.starts_with("--") {
                let (name, value) = match word.split_once('=') {
                    Some((name, value)) => (name, Some(value)),
                    None => (word.as_str(), next),
                };
                // Many programs accept abbreviated options.
                let mut long = program.long.split(' ');
                if name.len() > 3 && long.any(|it| it.starts_with(name)) {
                    self.option(value.unwrap_or_default());
                }
            } else if let Some(letters) = word.strip_prefix('-') {
                if let Some(value) = value_of(letters, program.short, program.valued) {
                    self.option(value.or(next).unwrap_or_default());
                }
                if !program.long.is_empty() && has(program.long, &format!("-{word}")) {
                    self.option(next.unwrap_or_default());
                }
            }
        }
    }

    fn option(&mut self, value: &str) {
        // As in `--checkpoint-action=exec=…` and `-wrapper a,b`.
        self.script(value.strip_prefix("exec=").unwrap_or(value));
        if value.contains(',') {
            self.script(&value.replace(',', " "));
        }
    }

    /// Handles `tar cIf PROGRAM ARCHIVE`: the values of all letters follow in order.
    fn old_tar(&mut self, words: &[String]) {
        let Some((letters, values)) = words.split_first() else {
            return;
        };
        if letters.starts_with('-') {
            return;
        }
        let valued = letters.chars().filter(|it| "bCfFgHIKLNTVX".contains(*it));
        for (letter, value) in valued.zip(values) {
            if letter == 'I' || letter == 'F' {
                self.script(value);
            }
        }
    }

    /// Handles ssh. `valued` are the letters of options with a value, without `o`.
    fn ssh(&mut self, words: &[String], valued: &str) {
        for (at, word) in words.iter().enumerate() {
            let next = words.get(at + 1).map_or("", String::as_str);
            let letters = word.strip_prefix('-').unwrap_or_default();
            let others = format!("o{}", valued.replace('F', ""));
            if let Some(file) = value_of(letters, "F", &others) {
                self.any |= is_read(file.unwrap_or(next));
            }
            let Some(value) = value_of(letters, "o", valued) else {
                continue;
            };
            let value = value.unwrap_or(next).trim_start();
            let Some(end) = value.find(['=', ' ', '\t']) else {
                continue;
            };
            let (name, line) = value.split_at(end);
            if has(SSH, &name.to_ascii_lowercase()) {
                self.script(line.trim_start_matches(['=', ' ', '\t']));
            }
            self.any |= name.contains(UNKNOWN);
        }
    }

    /// Handles `strace -o '|COMMAND'`.
    fn strace(&mut self, words: &[String]) {
        for value in values_of(words, "--output", "o", "EIOPSUXabepsu") {
            if value.starts_with(['|', '!']) {
                self.script(&value[1..]);
            }
        }
    }

    /// Handles `apt -o …::Pre-Invoke::=COMMAND`.
    fn apt(&mut self, words: &[String]) {
        for value in values_of(words, "--option", "o", "cth") {
            let name = value.to_ascii_lowercase();
            let matches = |it: &&str| name.contains(it);
            if APT.split(' ').any(|it| matches(&it)) {
                self.script(value.rsplit('=').next().unwrap_or_default());
            }
        }
    }

    fn socat(&mut self, words: &[String]) {
        for address in words.iter().flat_map(|it| it.split("!!")) {
            let Some((kind, rest)) = address.split_once(':') else {
                continue;
            };
            if ["EXEC", "SYSTEM", "SHELL"].contains(&kind.to_ascii_uppercase().as_str()) {
                self.script(rest.split(',').next().unwrap_or_default());
                self.script(rest);
            }
        }
    }

    fn zip(&mut self, words: &[String]) {
        for (at, word) in words.iter().enumerate() {
            let next = words.get(at + 1).map_or("", String::as_str);
            let (name, value) = word.split_once('=').unwrap_or((word, next));
            match word.strip_prefix("-TT") {
                Some("") => self.script(next),
                Some(line) => self.script(line.trim_start_matches('=')),
                None if name.len() > 4 && "--unzip-command".starts_with(name) => self.script(value),
                None => {}
            }
        }
    }

    fn debugger(&mut self, words: &[String]) {
        for (at, word) in words.iter().enumerate() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (word.as_str(), words.get(at + 1).cloned()),
            };
            let name = name.trim_start_matches('-');
            if word == "--args" || word == "-args" || word == "--" {
                self.commands.push(words[at + 1..].to_vec());
                return;
            }
            let takes = [
                "ex",
                "iex",
                "eval-command",
                "init-eval-command",
                "o",
                "one-line",
            ];
            if !word.starts_with('-') || !takes.contains(&name) {
                continue;
            }
            let value = value.unwrap_or_default();
            let value = value.trim();
            let debugger_command = value.split([' ', '\t']).next().unwrap_or_default();
            let rest = value[debugger_command.len()..].trim();
            match debugger_command {
                "shell" | "pipe" | "|" | "make" | "platform" => self.script(rest),
                "python" | "py" | "source" | "guile" | "gu" | "script" | "command" => {
                    self.any = true;
                }
                _ if debugger_command.starts_with('!') => self.script(&value[1..]),
                _ => self.any |= debugger_command.contains(UNKNOWN),
            }
        }
    }

    fn make(&mut self, words: &[String]) {
        for (at, word) in words.iter().enumerate() {
            let next = words.get(at + 1).map(String::as_str);
            let shell = word
                .strip_prefix("SHELL")
                .map(|it| it.trim_start_matches([':', '?', '+']));
            if let Some(shell) = shell.and_then(|it| it.strip_prefix('=')) {
                let parts: Vec<String> = shell.split_whitespace().map(str::to_owned).collect();
                // A shell gets the lines of the makefile, as it would anyway.
                let is_option = |it: &String| it.starts_with('-') && !it.contains('c');
                if !is_shell(&parts) || !parts[1..].iter().all(is_option) {
                    self.script(shell);
                }
            }
            let letters = word.strip_prefix('-').filter(|it| !it.starts_with('-'));
            let letters = letters.unwrap_or_default();
            let file = match word.as_str() {
                "--file" | "--makefile" => next,
                word => word
                    .strip_prefix("--file=")
                    .or(word.strip_prefix("--makefile="))
                    .or_else(|| value_of(letters, "f", "CEIjloOW")?.or(next)),
            };
            self.any |= file.is_some_and(|it| it == "-" || is_read(it));
            self.any |= word.starts_with("--ev") || value_of(letters, "E", "CfIjloOW").is_some();
        }
    }

    /// Handles `ip netns exec NAME COMMAND`.
    fn ip_exec(&mut self, words: &[String]) {
        let is_exec = |it: &[String]| {
            "netns vrf".split(' ').any(|name| {
                "exec".starts_with(&it[1])
                    && !it[1].is_empty()
                    && name.starts_with(&it[0])
                    && !it[0].is_empty()
            })
        };
        if let Some(at) = words.windows(2).position(is_exec) {
            self.commands
                .push(words.get(at + 3..).unwrap_or_default().to_vec());
        }
    }

    /// Handles `capsh`: words after `--` or `==` are those of a shell.
    fn capsh(&mut self, words: &[String]) {
        if let Some(at) = words
            .iter()
            .position(|it| it == "--" || it == "==" || it == "=+" || it == "-+")
        {
            let mut command = vec!["bash".to_owned()];
            command.extend_from_slice(&words[at + 1..]);
            self.commands.push(command);
        }
    }

    fn daemon(&mut self, words: &[String]) {
        let at = words.iter().position(|it| it == "--");
        let rest = at.map_or(&[][..], |at| &words[at + 1..]);
        let named: Vec<String> = std::mem::take(&mut self.scripts);
        for name in named {
            let mut command = vec![name];
            command.extend_from_slice(rest);
            self.commands.push(command);
        }
    }

    fn expect(&mut self, words: &[String]) {
        for word in words {
            for keyword in ["spawn ", "exec ", "system "] {
                for (at, _) in word.match_indices(keyword) {
                    let line = word[at + keyword.len()..].split(['\n', ';']).next();
                    self.script(line.unwrap_or_default());
                    self.any = true;
                }
            }
        }
    }

    fn database(&mut self, words: &[String]) {
        for word in words {
            for line in word.lines() {
                self.database_line(line.trim_start());
            }
            // A function of one of them, which takes a program.
            if let Some((_, call)) = word.split_once("edit(") {
                let quoted = call.split('\'').skip(1).step_by(2);
                quoted.for_each(|it| self.script(it));
            }
        }
    }

    fn database_line(&mut self, line: &str) {
        for keyword in ["\\!", "\\system ", "\\P "] {
            let matches = line.match_indices(keyword);
            matches.for_each(|(at, _)| self.script(&line[at + keyword.len()..]));
        }
        let (keyword, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let is_abbreviation = |it: &str| keyword.len() > 1 && it.starts_with(keyword);
        if ["system", "pager"].contains(&keyword)
            || is_abbreviation(".shell")
            || is_abbreviation(".system")
        {
            self.script(rest);
        }
        // A file name may be a program instead.
        if keyword.starts_with(['.', '\\'])
            && let Some((_, line)) = rest.split_once('|')
        {
            self.script(line.split(['"', '\'']).next().unwrap_or_default());
        }
        if keyword == "\\copy"
            && let Some((_, line)) = rest.split_once("program '")
        {
            self.script(line.split('\'').next().unwrap_or_default());
        }
    }

    /// Handles `!COMMAND`, `r !COMMAND` and `1,$!COMMAND`.
    fn line_editor(&mut self, input: &str) {
        for line in input.lines() {
            let Some((before, line_after)) = line.split_once('!') else {
                continue;
            };
            let is_address = |it: char| it.is_ascii_digit() || " \t:,.$%;".contains(it);
            let editor_command = before.trim_matches(is_address);
            if editor_command.is_empty() || before.ends_with(' ') && editor_command.len() < 6 {
                self.script(line_after);
            }
        }
    }

    fn editor(&mut self, words: &[String]) {
        for (at, word) in words.iter().enumerate() {
            let next = words.get(at + 1).map(String::as_str);
            let editor_command = match word.as_str() {
                "-c" | "--cmd" => next,
                word if word.starts_with("-c") => word.get(2..),
                word => word.strip_prefix('+'),
            };
            self.any |= word == "-S" || word == "-s" && next.is_some_and(is_passed_on);
            let Some(editor_command) = editor_command else {
                continue;
            };
            if let Some((_, line)) = editor_command.split_once('!') {
                self.script(line);
            }
            let name: String = editor_command
                .trim_start_matches([':', '%', ' '])
                .chars()
                .collect();
            let name = name.split(|it: char| !it.is_ascii_alphabetic()).next();
            let is_free = "q qa qall wq wqa x xa w wa set syntax normal s d g v e n p".split(' ');
            let mut is_free = is_free.chain([""]);
            self.any |= editor_command.contains(UNKNOWN) || !is_free.any(|it| Some(it) == name);
        }
    }

    fn awk(&mut self, words: &[String]) {
        let mut programs: Vec<&str> = Vec::new();
        let mut has_file = false;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = |joined: &str| match joined {
                "" => words.next().map_or("", String::as_str).to_owned(),
                joined => joined.trim_start_matches('=').to_owned(),
            };
            if word == "--" || !word.starts_with('-') || word == "-" {
                let first = match word == "--" {
                    true => words.next(),
                    false => Some(word),
                };
                programs.extend(
                    first
                        .filter(|_| !has_file && programs.is_empty())
                        .map(String::as_str),
                );
                break;
            }
            match word.as_bytes().get(1) {
                Some(b'F' | b'v' | b'W' | b'm') => drop(value(&word[2..])),
                Some(b'f' | b'E' | b'i' | b'l') => {
                    has_file |= !word.starts_with("-i") && !word.starts_with("-l");
                    let file = value(&word[2..]);
                    // A library, or a file whose name is unknown.
                    self.any |= word.starts_with("-l") || file == "-" || is_read(&file);
                }
                Some(b'e') => {
                    has_file = true;
                    let program = value(&word[2..]);
                    self.awk_program(&program);
                }
                Some(b'-') => {
                    let (name, joined) = word.split_once('=').unwrap_or((word, ""));
                    match name {
                        "--field-separator" | "--assign" => drop(value(joined)),
                        "--file" | "--exec" => {
                            has_file = true;
                            let file = value(joined);
                            self.any |= file == "-" || is_read(&file);
                        }
                        "--posix"
                        | "--traditional"
                        | "--re-interval"
                        | "--version"
                        | "--help"
                        | "--csv"
                        | "--characters-as-bytes"
                        | "--lint"
                        | "--sandbox" => {}
                        _ => {
                            has_file |= "--source".starts_with(name);
                            let program = value(joined);
                            self.awk_program(&program);
                            self.any |= !"--source".starts_with(name);
                        }
                    }
                }
                // Other options have no value.
                _ => {}
            }
        }
        for program in programs {
            self.awk_program(program);
        }
    }

    fn awk_program(&mut self, program: &str) {
        let invocations = awk::run_by(program);
        self.any |= invocations.any;
        invocations.scripts.iter().for_each(|it| self.script(it));
    }

    fn sed(&mut self, words: &[String]) {
        let mut scripts: Vec<String> = Vec::new();
        let mut operand = None;
        let mut words = words.iter();
        let mut has_file = false;
        while let Some(word) = words.next() {
            let mut next = || words.next().cloned().unwrap_or_default();
            if let Some(long) = word.strip_prefix("--") {
                let (name, value) = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (long, None),
                };
                if name.is_empty() {
                    operand = operand.or_else(|| words.next().cloned());
                    break;
                } else if "expression".starts_with(name) {
                    scripts.push(value.unwrap_or_else(next));
                } else if "file".starts_with(name) {
                    has_file = true;
                    let file = value.unwrap_or_else(next);
                    self.any |= file == "-" || is_read(&file);
                }
                continue;
            }
            let Some(letters) = word.strip_prefix('-').filter(|it| !it.is_empty()) else {
                operand = operand.or_else(|| Some(word.clone()));
                continue;
            };
            for (at, letter) in letters.char_indices() {
                let joined = &letters[at + letter.len_utf8()..];
                let mut value = || match joined {
                    "" => next(),
                    joined => joined.to_owned(),
                };
                match letter {
                    'e' => scripts.push(value()),
                    'f' => {
                        has_file = true;
                        let file = value();
                        self.any |= file == "-" || is_read(&file);
                    }
                    'l' => drop(value()),
                    'i' | 'I' => {}
                    _ => continue,
                }
                break;
            }
        }
        if scripts.is_empty() && !has_file {
            scripts.extend(operand);
        }
        let invocations = sed::run_by(&scripts.join("\n"));
        self.any |= invocations.any;
        invocations.scripts.iter().for_each(|it| self.script(it));
    }
}

/// Whether a program's file is a pass-through such as `/dev/stdin`. A name that begins with an
/// unknown part is some file.
fn is_read(file: &str) -> bool {
    is_passed_on(file) && (!file.contains(UNKNOWN) || file.starts_with("/dev/"))
}

/// Returns the values of an option, by its long name and by its letter. `valued` are the letters of
/// other options with a value.
fn values_of<'a>(
    words: &'a [String],
    long: &'a str,
    short: &'a str,
    valued: &'a str,
) -> impl Iterator<Item = &'a str> {
    words.iter().enumerate().filter_map(move |(at, word)| {
        let next = words.get(at + 1).map_or("", String::as_str);
        let letters = word.strip_prefix('-').unwrap_or_default();
        match word.strip_prefix(long) {
            Some(value) => Some(value.strip_prefix('=').unwrap_or(next)),
            None => value_of(letters, short, valued).map(|it| it.unwrap_or(next)),
        }
    })
}

/// Returns the value of a short option in a group of letters: here, or in the next word.
pub(super) fn value_of<'a>(
    letters: &'a str,
    options: &str,
    valued: &str,
) -> Option<Option<&'a str>> {
    for (at, letter) in letters.char_indices() {
        let rest = &letters[at + letter.len_utf8()..];
        if options.contains(letter) {
            return Some(Some(rest).filter(|it| !it.is_empty()));
        }
        if valued.contains(letter) {
            return None;
        }
    }
    None
}
