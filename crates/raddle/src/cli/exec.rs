//! The command line of `raddle exec`. It accepts the flags of the stock TypeScript SDK, in any
//! order.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use clap::builder::NonEmptyStringValueParser;
use clap::{ArgAction, Args, Subcommand, ValueEnum};
use raddle_config::Override;

#[derive(Debug, Args)]
pub(crate) struct Exec {
    #[command(subcommand)]
    pub(crate) command: Option<ExecCommand>,

    /// Task for the agent; - reads it from stdin
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,

    #[command(flatten)]
    pub(crate) options: ExecOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExecCommand {
    /// Continue a thread
    Resume(ExecResume),
}

#[derive(Debug, Args)]
pub(crate) struct ExecResume {
    /// Thread id; with --last, the prompt
    #[arg(value_name = "THREAD_ID")]
    pub(crate) thread: Option<String>,

    /// Task for the agent; - reads it from stdin
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,

    /// Use the newest thread of this folder
    #[arg(long)]
    pub(crate) last: bool,

    /// With --last: of any folder
    #[arg(long, requires = "last")]
    pub(crate) all: bool,

    #[command(flatten)]
    pub(crate) options: ExecOptions,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ExecOptions {
    /// Set a configuration value, such as model=NAME; may be repeated
    #[arg(short = 'c', long = "config", value_name = "KEY=VALUE")]
    pub(crate) config: Vec<Override>,

    /// Model, or PROVIDER/MODEL
    #[arg(short = 'm', long, value_name = "MODEL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) model: Option<String>,

    /// read-only, workspace-write or danger-full-access
    #[arg(short = 's', long, value_name = "MODE", hide_possible_values = true)]
    pub(crate) sandbox: Option<ExecSandbox>,

    /// Working folder
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) cd: Option<PathBuf>,

    /// Work in the folder itself (shared), or in a copy of it (copy): see `raddle apply`
    #[arg(
        hide_short_help = true,
        long,
        value_name = "WHERE",
        hide_possible_values = true
    )]
    pub(crate) workspace: Option<ExecWorkspace>,

    /// Additional writable folder; may be repeated
    #[arg(hide_short_help = true, long, value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,

    /// Image for the model; may be repeated
    #[arg(short = 'i', long, value_name = "FILE")]
    pub(crate) image: Vec<PathBuf>,

    /// JSON Schema that the answer must match
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<PathBuf>,

    /// Also write the answer to this file
    #[arg(hide_short_help = true, short = 'o', long, value_name = "FILE")]
    pub(crate) output_last_message: Option<PathBuf>,

    /// Print events as JSON lines; without a prompt, read it from stdin
    #[arg(long, alias = "experimental-json")]
    pub(crate) json: bool,

    /// Limits of the turn, like usd=2,tokens=100000,seconds=600,tool_calls=50
    #[arg(long, value_name = "KEY=N,…")]
    pub(crate) budget: Option<Budget>,

    /// Approval requests: ask on the terminal, deny, or apply the rules
    #[arg(long, value_name = "HOW", hide_possible_values = true)]
    pub(crate) unattended: Option<Unattended>,

    /// Keep the thread in memory only
    #[arg(hide_short_help = true, long)]
    pub(crate) ephemeral: bool,

    /// Use a running server: ws://HOST:PORT, unix://PATH, or unix:// for the daemon
    #[arg(long, value_name = "URL")]
    pub(crate) remote: Option<String>,

    /// Environment variable with the server's token
    #[arg(
        hide_short_help = true,
        long,
        value_name = "NAME",
        requires = "remote",
        value_parser = NonEmptyStringValueParser::new()
    )]
    pub(crate) remote_auth_token_env: Option<String>,

    /// Print only the answer and errors
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,

    /// Colours on stderr
    #[arg(hide_short_help = true, long, value_name = "WHEN")]
    pub(crate) color: Option<Color>,

    /// No sandbox and no approvals: only where the agent is isolated otherwise
    #[arg(
        hide_short_help = true,
        long,
        alias = "yolo",
        conflicts_with_all = ["sandbox", "full_auto", "unattended"]
    )]
    pub(crate) dangerously_bypass_approvals_and_sandbox: bool,

    // Flags that other clients pass. They change nothing here, or an option above replaces them.
    #[arg(long, hide = true, conflicts_with = "sandbox")]
    pub(crate) full_auto: bool,
    #[arg(long, hide = true, value_name = "SOURCE")]
    pub(crate) thread_source: Option<String>,
    #[arg(long, hide = true, action = ArgAction::SetTrue)]
    pub(crate) skip_git_repo_check: bool,
    #[arg(long, hide = true, value_name = "PROGRAM")]
    pub(crate) cyber_access_program: Option<String>,
}

impl ExecOptions {
    /// Merges the options before and after `resume`: lists are concatenated, otherwise the later
    /// wins.
    pub(crate) fn and(self, other: Self) -> Self {
        let list = |mut first: Vec<PathBuf>, then: Vec<PathBuf>| {
            first.extend(then);
            first
        };
        let mut config = self.config;
        config.extend(other.config);
        Self {
            config,
            model: other.model.or(self.model),
            sandbox: other.sandbox.or(self.sandbox),
            cd: other.cd.or(self.cd),
            workspace: other.workspace.or(self.workspace),
            add_dir: list(self.add_dir, other.add_dir),
            image: list(self.image, other.image),
            output_schema: other.output_schema.or(self.output_schema),
            output_last_message: other.output_last_message.or(self.output_last_message),
            json: self.json || other.json,
            budget: other.budget.or(self.budget),
            unattended: other.unattended.or(self.unattended),
            ephemeral: self.ephemeral || other.ephemeral,
            remote: other.remote.or(self.remote),
            remote_auth_token_env: other.remote_auth_token_env.or(self.remote_auth_token_env),
            quiet: self.quiet || other.quiet,
            color: other.color.or(self.color),
            dangerously_bypass_approvals_and_sandbox: self.dangerously_bypass_approvals_and_sandbox
                || other.dangerously_bypass_approvals_and_sandbox,
            full_auto: self.full_auto || other.full_auto,
            thread_source: other.thread_source.or(self.thread_source),
            skip_git_repo_check: self.skip_git_repo_check || other.skip_git_repo_check,
            cyber_access_program: other.cyber_access_program.or(self.cyber_access_program),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExecSandbox {
    ReadOnly,
    WorkspaceWrite,
    DangerFullAccess,
}

/// The folder in which the agent works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExecWorkspace {
    Shared,
    Copy,
}

/// How requests of the agent are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Unattended {
    /// Ask on the terminal; the default if there is one
    Ask,
    /// Deny at once; the default without a terminal
    Deny,
    /// Apply `unattended` of rules.toml
    Rules,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

/// Limits of the turn, each a configuration key with its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Budget(pub(crate) Vec<Override>);

impl FromStr for Budget {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        const KEYS: [&str; 4] = ["tokens", "usd", "seconds", "tool_calls"];
        let bound = |part: &str| -> Result<Override> {
            let (key, value) = part
                .split_once('=')
                .with_context(|| format!("`{part}` has no `=`; write key=number"))?;
            let (key, value) = (key.trim(), value.trim());
            let keys = KEYS.join(", ");
            ensure!(KEYS.contains(&key), "`{key}` is none of {keys}");
            let is_number = match key {
                "usd" => value
                    .parse::<f64>()
                    .is_ok_and(|it| it.is_finite() && it > 0.0),
                _ => value.parse::<u32>().is_ok_and(|it| it > 0),
            };
            ensure!(
                is_number,
                "`{value}` is not a valid {key}; give a number above 0"
            );
            let setting = format!("budget.turn.{key}={value}").parse::<Override>();
            Ok(setting?)
        };
        let bounds: Vec<Override> = text.split(',').map(bound).collect::<Result<_>>()?;
        let twice = |(at, it): &(usize, &Override)| {
            let mut before = bounds[..*at].iter();
            before.any(|other| other.path() == it.path())
        };
        match bounds.iter().enumerate().find(twice) {
            Some((_, it)) => {
                let key = it.path().last().map_or("", String::as_str);
                bail!("`{key}` is given twice; give it once")
            }
            None => Ok(Self(bounds)),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn parse(line: &[&str]) -> Result<Exec, String> {
        let words = ["raddle", "exec"].iter().chain(line);
        match Cli::try_parse_from(words)
            .map_err(|it| it.to_string())?
            .command
        {
            Command::Exec(exec) => Ok(*exec),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn arguments_of_the_typescript_sdk_are_parsed() {
        let exec = parse(&[
            "--experimental-json",
            "--config",
            "a.b=3",
            "--config",
            "openai_base_url=\"http://127.0.0.1:9/v1\"",
            "--model",
            "mock",
            "--sandbox",
            "workspace-write",
            "--cd",
            "/w",
            "--add-dir",
            "/x",
            "--add-dir",
            "/y",
            "--skip-git-repo-check",
            "--output-schema",
            "/s.json",
            "--cyber-access-program",
            "standard",
            "--config",
            "model_reasoning_effort=\"high\"",
            "--config",
            "sandbox_workspace_write.network_access=true",
            "--config",
            "web_search=\"live\"",
            "--config",
            "approval_policy=\"never\"",
            "resume",
            "019a0000-0000-7000-8000-000000000001",
            "--image",
            "/1.png",
            "--image",
            "/2.png",
        ])
        .expect("arguments");
        assert_eq!(exec.prompt, None);
        let Some(ExecCommand::Resume(resume)) = exec.command else {
            panic!("no resume");
        };
        assert_eq!(resume.prompt, None);
        assert!(resume.thread.is_some_and(|it| it.starts_with("019a")));
        let all = exec.options.and(resume.options);
        assert!(all.json);
        assert_eq!(all.config.len(), 6);
        assert_eq!(all.add_dir.len(), 2);
        assert_eq!(
            all.image,
            [PathBuf::from("/1.png"), PathBuf::from("/2.png")]
        );
        assert_eq!(all.sandbox, Some(ExecSandbox::WorkspaceWrite));
        assert_eq!(all.model.as_deref(), Some("mock"));

        let first = parse(&[
            "--experimental-json",
            "--thread-source",
            "x",
            "--image",
            "/1.png",
        ]);
        assert_eq!(first.expect("arguments").options.image.len(), 1);
    }

    #[test]
    fn a_prompt_is_one_argument() {
        for (line, prompt) in [
            (&["do it"][..], Some("do it")),
            (&["-"], Some("-")),
            (&["--json", "do it", "-m", "x"], Some("do it")),
            (&["-q", "--", "--help me"], Some("--help me")),
            (&[], None),
        ] {
            let exec = parse(line).expect("arguments");
            assert_eq!(exec.prompt.as_deref(), prompt, "{line:?}");
        }
        for line in [&["one", "two"][..], &["--sandbox", "none", "x"], &["--all"]] {
            assert!(parse(line).is_err(), "{line:?}");
        }
    }

    #[test]
    fn a_budget_is_a_list_of_limits() {
        let budget: Budget = "tokens=10, usd=0.5".parse().expect("a budget");
        let expected = ["budget.turn.tokens=10", "budget.turn.usd=0.5"];
        let expected = expected.map(|it| it.parse().expect("a setting"));
        assert_eq!(budget.0, expected);
        for text in [
            "",
            "tokens",
            "tokens=",
            "tokens=-1",
            "tokens=0",
            "usd=NaN",
            "tokens=1,tokens=9",
            "beer=1",
        ] {
            assert!(text.parse::<Budget>().is_err(), "{text}");
        }
    }
}
