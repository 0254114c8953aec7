//! Rules made from an answer: "yes, and from now on for every command that begins like this".

use serde_json::Value;

use super::command::{base_name, is_option, is_unknown};
use super::options::has;
use super::shells::is_shell;
use super::wrapper::{is_wrapper, wrapped_command};
use super::{Layer, ParsedScript, Rule, Subject, Verdict, harmless};

/// Maximum number of words in a rule made from an answer.
const WORDS_MAX: usize = 64;

/// Maximum number of bytes in one of these words.
const WORD_BYTES_MAX: usize = 1024;

/// A rule that the user adds with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amendment {
    /// Words with which commands begin. They are checked: there is at least one, and they do not
    /// match every command.
    words: Vec<String>,
}

/// Reason why an answer makes no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AmendmentError {
    /// The answer is not in the wire's form.
    #[error(
        "the answer holds no list of words; send {{\"execpolicy_amendment\": [\"git\", \"push\"]}}"
    )]
    NoWords,
    /// It has no words, too many, or too long ones.
    #[error(
        "a rule has between 1 and {WORDS_MAX} words of at most {WORD_BYTES_MAX} bytes, none of them empty"
    )]
    BadWords,
    /// The rule would allow everything.
    #[error(
        "`{0}` can run any command, so a rule that begins with it would allow everything; name what it runs"
    )]
    TooWide(String),
}

/// Programs that run or write anything, depending on their arguments or their input.
const ANYTHING: &str = "\
    . at awk batch bunx cmd crontab curl ed emacs eval ex expect fd fdfind find gawk gdb lldb mawk nawk nc \
    ncat nix-shell nvim pipx npx rsync rvim scp screen script sed sftp socat source ssh sshpass su tar telnet tmux \
    uvx vi view vim vimdiff wget xterm";

/// Programs that run a script. A script named by its file is fine; code on the command line is not.
const INTERPRETERS: &str = "\
    Rscript bun clisp deno elixir erl escript ghci groovy guile iex irb jshell julia lua luajit node nodejs ocaml \
    osascript perl php pypy python racket ruby runghc runhaskell sbcl scala swipl tclsh ts-node tsx wish";

/// Programs with many subcommands: a rule must name the subcommand.
const BY_SUBCOMMAND: &str = "\
    ansible apt apt-get asdf aws az bazel brew bundle cabal cargo composer conda dnf docker dotnet dune gcloud gem gh \
    git go gradle hatch helm just kubectl lein make mamba mise mix mvn nerdctl ninja nix npm opam pacman pdm pip pip3 \
    pipenv pixi pnpm podman poetry rake rm rustup rye sbt stack swift systemctl task terraform uv yarn yum";

/// Subcommands that run what follows.
const RUNNERS: &str = "dlx exec run shell x";

/// Programs among these whose runs can do anything, whatever follows.
const CONTAINERS: &str = "docker kubectl nerdctl podman";

/// Subcommands of git that run a given command, or configure one to run.
const GIT_RUNNERS: &str = "\
    bisect config credential difftool filter-branch for-each-repo hook mergetool rebase submodule";

impl Amendment {
    /// Checks the words of a rule.
    pub fn new(words: Vec<String>) -> Result<Self, AmendmentError> {
        let is_bad = |it: &String| {
            it.is_empty() || it.len() > WORD_BYTES_MAX || it.contains(char::is_control)
        };
        if words.is_empty() || words.len() > WORDS_MAX || words.iter().any(is_bad) {
            return Err(AmendmentError::BadWords);
        }
        if is_too_wide(&words) {
            return Err(AmendmentError::TooWide(words.join(" ")));
        }
        Ok(Self { words })
    }

    /// Parses a client's answer: `acceptWithExecpolicyAmendment`, or its content.
    pub fn of_answer(rule: &Value) -> Result<Self, AmendmentError> {
        let rule = rule.get("acceptWithExecpolicyAmendment").unwrap_or(rule);
        let words = rule.get("execpolicy_amendment").unwrap_or(rule);
        let words: Option<Vec<String>> = words.as_array().and_then(|words| {
            let word = |it: &Value| it.as_str().map(str::to_owned);
            words.iter().map(word).collect()
        });
        Self::new(words.ok_or(AmendmentError::NoWords)?)
    }

    /// Words with which commands begin.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Returns the rule. It never goes beyond the sandbox.
    pub fn rule(&self) -> Rule {
        Rule {
            layer: Layer::User,
            subject: Subject::Command(self.words.clone()),
            verdict: Verdict::Allow,
            beyond: false,
            reason: None,
        }
    }
}

/// Returns the words that a client is offered as a rule for this script: those of the only command
/// not known to be harmless. Empty if there are several, or if a rule could not allow it.
pub fn proposed(script: &ParsedScript) -> Vec<String> {
    if !script.plain {
        return Vec::new();
    }
    // A command that another one runs is listed in the script by itself.
    let needs_rule = |words: &&Vec<String>| {
        !harmless::is_harmless(words, harmless::Isolation::Sandboxed)
            && wrapped_command(words).is_none_or(|it| !it.neutral)
    };
    let mut unknown = script.commands.iter().filter(needs_rule);
    match (unknown.next(), unknown.next()) {
        (Some(words), None) => Amendment::new(words.clone()).map_or(Vec::new(), |it| it.words),
        _ => Vec::new(),
    }
}

fn is_too_wide(words: &[String]) -> bool {
    let name = base_name(&words[0]);
    if is_shell(words) || is_wrapper(&words[0]) || words.iter().any(|it| is_unknown(it)) {
        return true;
    }
    // `python3.12` is python too.
    let stem = name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.');
    let is_in = |list: &str| has(list, name) || !stem.is_empty() && has(list, stem);
    if is_in(ANYTHING) {
        return true;
    }
    let second = words.get(1).map(String::as_str);
    if is_in(INTERPRETERS) {
        return second.is_none_or(|it| is_option(it) || !it.contains(['.', '/']));
    }
    if !is_in(BY_SUBCOMMAND) {
        return false;
    }
    match second {
        None => true,
        Some(it) if is_option(it) => true,
        Some(it) if name == "git" => has(GIT_RUNNERS, it),
        Some(it) if has(RUNNERS, it) => {
            words.len() == 2 || is_in(CONTAINERS) || is_too_wide(&words[2..])
        }
        Some(_) => false,
    }
}
