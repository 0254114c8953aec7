//! Commands that run another command: what they run is judged too.

use super::command::{base_name, is_unknown, program_name};

/// What a command that runs another one runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Through {
    /// Where the command that is run may begin. More than one place if an option is not known, because the
    /// next word may be its value.
    pub starts: Vec<usize>,
    /// Whether running it so is the same as running it.
    pub neutral: bool,
    /// Whether it is given further words that are not here.
    pub fed: bool,
}

struct Wrapper {
    name: &'static str,
    /// Options without a value.
    flags: &'static [&'static str],
    /// Options with a value.
    valued: &'static [&'static str],
    /// How many words stand before the command, apart from options.
    operands: usize,
    /// Whether, with known options only, it adds nothing to what it runs.
    neutral: bool,
}

const fn wrapper(
    name: &'static str,
    flags: &'static [&'static str],
    valued: &'static [&'static str],
) -> Wrapper {
    Wrapper {
        name,
        flags,
        valued,
        operands: 0,
        neutral: false,
    }
}

const fn neutral(it: Wrapper) -> Wrapper {
    Wrapper {
        neutral: true,
        ..it
    }
}

const fn after(operands: usize, it: Wrapper) -> Wrapper {
    Wrapper { operands, ..it }
}

const WRAPPERS: &[Wrapper] = &[
    neutral(wrapper("nohup", &[], &[])),
    neutral(wrapper("nice", &[], &["-n", "--adjustment"])),
    neutral(wrapper("time", &["-p"], &[])),
    neutral(wrapper("command", &["-p"], &[])),
    neutral(wrapper("builtin", &[], &[])),
    neutral(wrapper("env", &["-0", "--null"], &[])),
    neutral(wrapper("setsid", &["-w", "--wait"], &[])),
    neutral(wrapper(
        "stdbuf",
        &[],
        &["-i", "-o", "-e", "--input", "--output", "--error"],
    )),
    neutral(after(
        1,
        wrapper(
            "timeout",
            &["--preserve-status", "--foreground", "-v", "--verbose"],
            &["-k", "--kill-after", "-s", "--signal"],
        ),
    )),
    neutral(wrapper("exec", &[], &[])),
    wrapper("ionice", &["-t"], &["-c", "-n", "--class", "--classdata"]),
    wrapper("chrt", &["-b", "-f", "-i", "-o", "-r"], &[]),
    after(1, wrapper("taskset", &[], &[])),
    after(
        1,
        wrapper("flock", &["-s", "-x", "-n", "-u", "-o"], &["-w", "-E"]),
    ),
    after(1, wrapper("chroot", &[], &[])),
    wrapper("unshare", &["-r", "-n", "-m", "-U", "-p", "-f"], &[]),
    wrapper("nsenter", &[], &["-t", "--target"]),
    wrapper("setpriv", &[], &[]),
    wrapper("strace", &["-f", "-q", "-c"], &["-o", "-e", "-p", "-s"]),
    wrapper("ltrace", &["-f"], &["-o", "-e", "-p"]),
    wrapper(
        "watch",
        &["-d", "-t", "-b", "-e", "-g", "-x"],
        &["-n", "--interval"],
    ),
    wrapper("busybox", &[], &[]),
    wrapper("toybox", &[], &[]),
    wrapper("coproc", &[], &[]),
    wrapper(
        "sudo",
        &["-E", "-H", "-n", "-S", "-b", "-i", "-s", "-k", "-A", "-P"],
        &[
            "-u", "--user", "-g", "--group", "-h", "--host", "-p", "--prompt", "-C", "-T", "-D",
            "-R", "-r", "-t", "-U",
        ],
    ),
    wrapper("doas", &["-n", "-s", "-L"], &["-u", "-C"]),
    wrapper("pkexec", &[], &["--user"]),
    wrapper(
        "xargs",
        &["-0", "--null", "-r", "--no-run-if-empty", "-t", "-x", "-p"],
        &[
            "-I",
            "-n",
            "-P",
            "-L",
            "-d",
            "-E",
            "-s",
            "-a",
            "--max-args",
            "--max-procs",
            "--max-lines",
            "--delimiter",
            "--arg-file",
        ],
    ),
    wrapper("parallel", &["-k", "-0"], &["-j", "-a", "--jobs"]),
];

/// Wrappers that give what they run words of their own.
const FEEDERS: [&str; 2] = ["xargs", "parallel"];

/// Shells that take a script after `-c`.
const SHELLS: [&str; 8] = ["ash", "bash", "dash", "fish", "ksh", "mksh", "sh", "zsh"];

/// Programs that hand such a script to a shell.
const LENDERS: [&str; 4] = ["flock", "runuser", "script", "su"];

/// What these words run, if they run another command.
pub fn through(words: &[String]) -> Option<Through> {
    let name = base_name(words.first()?);
    let wrapper = WRAPPERS.iter().find(|it| it.name == name)?;
    if name == "command" && words.iter().skip(1).any(|it| it == "-v" || it == "-V") {
        return None;
    }
    let mut neutral = wrapper.neutral && program_name(&words[0]) == name;
    let mut operands = wrapper.operands;
    let mut starts = Vec::new();
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let option = word.split('=').next().unwrap_or(word);
        if word == "--" {
            at += 1;
            // What stands before the command follows.
            neutral &= operands == 0;
        } else if wrapper.valued.contains(&word.as_str()) {
            at += 2;
        } else if wrapper.flags.contains(&word.as_str())
            || wrapper.valued.contains(&option) && option != word
            || is_number(word) && name == "nice"
        {
            at += 1;
        } else if word.starts_with('-') {
            // It may have a value or not.
            neutral = false;
            at += 1;
            if operands == 0 {
                starts.push(at + 1);
            }
        } else if is_assignment(word) {
            neutral = false;
            at += 1;
        } else if operands > 0 {
            // Without options before it, surely one of the words that stand before the command.
            if !neutral {
                starts.push(at);
            }
            operands -= 1;
            at += 1;
        } else {
            break;
        }
        if is_unknown(word) {
            neutral = false;
        }
    }
    starts.insert(0, at);
    starts.retain(|start| *start < words.len());
    starts.dedup();
    (!starts.is_empty()).then(|| Through {
        neutral: neutral && starts.len() == 1,
        fed: FEEDERS.contains(&name),
        starts,
    })
}

/// Where the script of a shell stands in these words, if they give one to a shell with `-c`.
pub fn shell_script(words: &[String]) -> Option<usize> {
    if !is_shell(words) && !LENDERS.contains(&base_name(words.first()?)) {
        return None;
    }
    let is_c = |word: &String| {
        word.starts_with('-') && !word.starts_with("--") && word.contains('c')
            || word == "--command"
    };
    let option = words.iter().skip(1).position(is_c)? + 1;
    // Further options may stand between.
    let script = words
        .iter()
        .skip(option + 1)
        .position(|word| !word.starts_with(['-', '+']));
    script.map(|at| option + 1 + at)
}

/// Whether the program is a shell.
pub fn is_shell(words: &[String]) -> bool {
    words
        .first()
        .is_some_and(|it| SHELLS.contains(&base_name(it)))
}

fn is_number(word: &str) -> bool {
    word.strip_prefix('-')
        .is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|it: char| it.is_ascii_digit())
            && name
                .bytes()
                .all(|it| it.is_ascii_alphanumeric() || it == b'_')
    })
}
