//! Commands that are known to be harmless: they only read, whatever arguments they get.
//!
//! An unlisted option makes a command unknown. So this list need not cover every way to make a
//! program run another or write, nor the abbreviations that it accepts.
//!
//! Some programs only read by their arguments, and yet run what a file of the workspace names. Git
//! runs a file system monitor of any repository it finds, also a bare one, and filters, pagers and
//! diff programs. A toolchain's proxy runs the program that the workspace pins. They are harmless
//! only in the sandbox. The policy cannot know the version of git or its settings, so outside the
//! sandbox they need approval.

use super::command::{is_option, program_name};
use super::options::{ValuePosition, has, is_signed_number, option};
use super::shells::is_shell;
use super::wrapper::wrapped_command;
use crate::Sandbox;

/// A program with the words that must follow it and the options that it may have.
struct KnownProgram {
    words: &'static [&'static str],
    options: Options,
    /// Whether words that are not options may follow.
    operands: bool,
}

enum Options {
    /// Allowed options, separated by spaces. A trailing colon marks an option with a value.
    Only(&'static str),
    /// Allowed options, never combined.
    Primaries(&'static str),
}

const fn known(words: &'static [&'static str], options: Options) -> KnownProgram {
    KnownProgram {
        words,
        options,
        operands: true,
    }
}

const fn alone(words: &'static [&'static str], options: Options) -> KnownProgram {
    KnownProgram {
        words,
        options,
        operands: false,
    }
}

/// Programs that only read and write to their output, with all their options.
const READERS: &str = "\
    basename cat cd cksum cmp comm cut df dirname du echo egrep expr false fgrep fold grep groups head \
    id ls md5sum nl nproc od paste pwd readlink realpath rev seq sha1sum sha256sum sha512sum stat tac \
    tail tr true uname wc which whoami";

const RG: &str = "\
    -. -0 -A: -B: -C: -E: -F -H -I -L -M: -N -P -S -T: -U -a -c -d: -e: -f: -g: -h -i -j: -l -m: -n -o \
    -p -q -r: -s -t: -u -v -w -x --after-context: --before-context: --color: --column --context: --count \
    --count-matches --files --files-with-matches --files-without-match --fixed-strings --follow --glob: \
    --heading --hidden --iglob: --ignore-case --invert-match --json --line-number --max-columns: \
    --max-count: --max-depth: --multiline --multiline-dotall --no-config --no-filename --no-heading \
    --no-ignore --no-ignore-vcs --no-line-number --no-messages --null --only-matching --passthru --pcre2 \
    --regexp: --replace: --smart-case --sort: --sortr: --stats --text --trim --type-list --type-not: \
    --type: --unrestricted --version --vimgrep --with-filename --word-regexp";

const FD: &str = "\
    -0 -E: -F -H -I -L -a -d: -e: -g -i -p -s -t: -u --absolute-path --color: --exclude: --extension: \
    --fixed-strings --follow --full-path --glob --hidden --ignore-case --max-depth: --no-ignore --type:";

const FIND: &str = "\
    -H -L -P -a -and -daystart -depth -empty -executable -false -follow -group -iname -inum -ipath \
    -iregex -iwholename -links -ls -maxdepth -mindepth -mmin -mount -mtime -name -newer -nogroup -not \
    -nouser -o -or -path -perm -print -print0 -prune -quit -readable -regex -regextype -samefile -size \
    -true -type -user -wholename -writable -xdev";

const TREE: &str = "\
    -C -D -F -I: -L: -P: -a -d -f -h -i -n -p -s -t --dirsfirst --du --filelimit: --gitignore --noreport \
    --prune";

const GIT_STATUS: &str =
    "-b -s -u -v -z --branch --ignored --long --porcelain --short --show-stash --untracked-files";

/// Options of `git diff`, `git log` and `git show`.
const GIT_HISTORY: &str = "\
    -C -G: -L: -M -R -S: -U: -a -b -i -n: -p -s -w -z --abbrev --abbrev-commit --all --author: \
    --branches --cached --check --color --committer: --date: --decorate --diff-filter: --exit-code \
    --first-parent --follow --format: --full-index --graph --grep: --ignore-all-space \
    --ignore-space-change --max-count: --merge-base --merges --minimal --name-only --name-status \
    --no-color --no-decorate --no-ext-diff --no-merges --no-patch --no-renames --no-textconv --numstat \
    --oneline --patch --patience --pretty --quiet --raw --remotes --reverse --shortstat --since: --skip: \
    --staged --stat --summary --tags --unified: --until: --word-diff";

const GIT_GREP: &str = "\
    -A: -B: -C: -E -F -H -I -L -P -W -a -c -e: -h -i -l -n -o -p -q -v -w --all-match --and --cached \
    --count --fixed-strings --ignore-case --line-number --no-color --not --or --untracked";

const KNOWN: &[KnownProgram] = &[
    known(&["rg"], Options::Only(RG)),
    known(&["fd"], Options::Only(FD)),
    known(&["find"], Options::Primaries(FIND)),
    known(&["tree"], Options::Only(TREE)),
    known(&["printf"], Options::Only("")),
    known(&["base64"], Options::Only("-d -w: --decode")),
    known(
        &["file"],
        Options::Only("-L -b -i --brief --mime --mime-type"),
    ),
    known(
        &["diff"],
        Options::Only(
            "-N -U: -a -b -i -q -r -u -w -y --brief --recursive --side-by-side --unified",
        ),
    ),
    known(&["sort"], Options::Only("-b -f -h -k: -n -r -t: -u -V")),
    alone(&["uniq"], Options::Only("-c -d -i -u")),
    known(&["command", "-v"], Options::Only("")),
    known(&["git", "status"], Options::Only(GIT_STATUS)),
    known(&["git", "diff"], Options::Only(GIT_HISTORY)),
    known(&["git", "log"], Options::Only(GIT_HISTORY)),
    known(&["git", "show"], Options::Only(GIT_HISTORY)),
    known(&["git", "grep"], Options::Only(GIT_GREP)),
    known(
        &["git", "blame"],
        Options::Only("-C -L: -M -e -l -s -w --porcelain"),
    ),
    alone(
        &["git", "branch"],
        Options::Only("-a -r -v --all --list --remotes --show-current"),
    ),
    alone(&["git", "remote"], Options::Only("-v --verbose")),
    known(
        &["git", "rev-parse"],
        Options::Only(
            "--abbrev-ref --git-dir --is-inside-work-tree --short --show-prefix --show-toplevel --verify",
        ),
    ),
    known(
        &["git", "ls-files"],
        Options::Only(
            "-c -d -m -o -s -z --cached --deleted --exclude-standard --modified --others --stage",
        ),
    ),
    known(&["git", "cat-file"], Options::Only("-e -p -s -t")),
];

/// Programs that print their version with `--version` and do nothing else. Several are proxies,
/// which search the workspace for the program to run: `rust-toolchain.toml`, `.yarnrc.yml`,
/// `packageManager`.
const VERSIONED: &str =
    "cargo clang cmake deno gcc git java make node npm pip pnpm python python3 ruby rustc yarn";

/// Whether Raddle's sandbox confines a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Isolation {
    Sandboxed,
    /// With the rights of the user, or in a sandbox of another program.
    Unconfined,
}

impl Isolation {
    pub(super) fn of(sandbox: &Sandbox) -> Self {
        match sandbox {
            Sandbox::ReadOnly { .. } | Sandbox::WorkspaceWrite { .. } => Self::Sandboxed,
            Sandbox::FullAccess | Sandbox::External { .. } => Self::Unconfined,
        }
    }
}

/// Whether this command is known to be harmless. `words` must be the whole command.
pub(super) fn is_harmless(words: &[String], confinement: Isolation) -> bool {
    let Some((name, rest)) = words.split_first() else {
        return false;
    };
    let name = program_name(name);
    if has(READERS, name) || is_bare_shell(words) || is_sed_print(name, rest) {
        return true;
    }
    if confinement == Isolation::Unconfined && (name == "git" || has(VERSIONED, name)) {
        return false;
    }
    if has(VERSIONED, name) && rest == ["--version"] {
        return true;
    }
    // Without a terminal git starts no pager, so this option changes nothing.
    let rest = match rest {
        [first, rest @ ..] if name == "git" && first == "--no-pager" => rest,
        rest => rest,
    };
    KNOWN.iter().any(|it| it.fits(name, rest))
        || wrapped_command(words)
            .is_some_and(|it| it.neutral && is_harmless(&words[it.starts[0]..], confinement))
}

impl KnownProgram {
    fn fits(&self, name: &str, words: &[String]) -> bool {
        let (program, leading) = (self.words[0], &self.words[1..]);
        let leads = words.len() >= leading.len() && leading.iter().zip(words).all(|(a, b)| a == b);
        if name != program || !leads {
            return false;
        }
        let words = &words[leading.len()..];
        match self.options {
            Options::Primaries(list) => words
                .iter()
                .all(|word| !is_option(word) || has(list, word) || is_signed_number(word)),
            Options::Only(list) => self.has_only(list, words),
        }
    }

    fn has_only(&self, list: &str, words: &[String]) -> bool {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--" {
                return self.operands || words.len() == 0;
            }
            if !is_option(word) {
                if !self.operands {
                    return false;
                }
                continue;
            }
            match option(list, word) {
                None => return false,
                Some(ValuePosition::Next) => drop(words.next()),
                Some(ValuePosition::Here) => {}
            }
        }
        true
    }
}

/// Whether this is a shell whose script was removed, because the script is judged by itself.
pub(super) fn is_bare_shell(words: &[String]) -> bool {
    let is_named = |name: &String| matches!(program_name(name), "bash" | "dash" | "sh" | "zsh");
    match words {
        [name, options] => {
            is_shell(words) && is_named(name) && ["-c", "-lc", "-cl"].contains(&options.as_str())
        }
        [name, login, command] => is_named(name) && login == "-l" && command == "-c",
        _ => false,
    }
}

/// Matches `sed -n 1,20p FILE…`, and no other script.
fn is_sed_print(name: &str, words: &[String]) -> bool {
    let [quiet, script, files @ ..] = words else {
        return false;
    };
    let is_line =
        |it: &str| it == "$" || !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    let is_print = |script: &str| match script.strip_suffix('p') {
        Some(range) => match range.split_once(',') {
            Some((from, to)) => is_line(from) && is_line(to),
            None => is_line(range),
        },
        None => false,
    };
    name == "sed"
        && quiet == "-n"
        && is_print(script)
        && files.iter().all(|file| !file.starts_with('-'))
}
