//! `raddle sandbox`: runs a command inside the sandbox, for users.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use raddle_config::Override;
use raddle_console::sanitize;
use raddle_sandbox::{
    FileHolds, HoldError, Launch, Measurement, Network, Options, Policy, ProgramError, ReadScope,
    SandboxRules, Tier, Tmp, environment,
};

use crate::cli::Sandbox;
use crate::config;
use crate::home::Home;

/// The configuration key for the path of bubblewrap.
const BWRAP_KEY: &str = "sandbox_bwrap_path";

/// Measures the sandbox of this machine.
pub(crate) fn measure(again: bool, overrides: &[Override]) -> Result<Measurement> {
    let home = Home::find()?;
    let options = options(&home, bubblewrap(&home, overrides))?;
    if let Some(cache) = options.cache.as_ref().filter(|_| again) {
        // A missing cache is fine.
        let _ = std::fs::remove_file(cache);
    }
    Ok(raddle_sandbox::measure(&options))
}

/// Returns the measurement as a closure, so that a server can run it in the background.
pub(crate) fn measuring(
    home: &Home,
    overrides: Vec<Override>,
) -> Result<impl Fn() -> Measurement + use<>> {
    let home = home.clone();
    // Finding bubblewrap reads the disk, and the server's start does not wait for that.
    let options = options(&home, Err(ProgramError::NotKnown(String::new())))?;
    Ok(move || {
        raddle_sandbox::measure(&Options {
            bubblewrap: bubblewrap(&home, &overrides),
            ..options.clone()
        })
    })
}

/// The bubblewrap to start: the configured one, else the system's.
fn bubblewrap(home: &Home, overrides: &[Override]) -> Result<PathBuf, ProgramError> {
    let unknown = |why: String| ProgramError::NotKnown(why);
    let config = config::open(home, overrides.to_vec());
    let config = config.map_err(|error| unknown(format!("{error:#}")))?;
    let configured = config.get(BWRAP_KEY);
    let configured = configured.map_err(|error| unknown(error.to_string()))?;
    let configured = match &configured {
        None => None,
        Some(toml::Value::String(path)) => Some(Path::new(path)),
        Some(_) => return Err(unknown(format!("`{BWRAP_KEY}` must be a string"))),
    };
    raddle_sandbox::find_bubblewrap(configured, std::env::var_os("PATH").as_deref())
}

fn options(home: &Home, bubblewrap: Result<PathBuf, ProgramError>) -> Result<Options> {
    Ok(Options {
        helper: std::env::current_exe().context("cannot find this program")?,
        bubblewrap,
        scratch: std::env::temp_dir(),
        cache: Some(home.state.join("fence")),
    })
}

/// Runs the command and exits with its status.
pub(crate) fn run(args: Sandbox) -> Result<ExitCode> {
    let cwd = std::env::current_dir().context("the current folder")?;
    let home = Home::find()?;
    let mut rules = rules(&args, cwd.clone())?;
    let bubblewrap = bubblewrap(&home, &[]);
    let measured = raddle_sandbox::measure(&options(&home, bubblewrap)?);
    if measured.sandbox.tier() == Tier::A {
        // The configuration may hold keys, and the threads hold conversations, so both are hidden
        // unless `--write` names them. Only a private mount namespace can hide paths.
        let own = home.paths().hidden_paths().into_iter();
        let own = own.map(|it| std::fs::canonicalize(&it).unwrap_or(it));
        let own: Vec<PathBuf> = own.collect();
        let is_named = |path: &&PathBuf| {
            let mut folders = own.iter().filter(|it| path.starts_with(it));
            folders.any(|folder| rules.write.iter().any(|it| it.starts_with(folder)))
        };
        let hidden: Vec<PathBuf> = own.iter().filter(|it| !is_named(it)).cloned().collect();
        rules.hide_own(&hidden);
    }
    let about: Vec<_> = args.command.iter().map(|it| it.to_string_lossy()).collect();
    let holds = FileHolds::of(&home.paths().home);
    let _claim = match holds.claim_folders(&about.join(" "), &mut rules, false) {
        Ok(claim) => Some(claim),
        // A server that shares this home could not write there either.
        Err(HoldError::Io(_)) => None,
        Err(busy @ HoldError::Busy(_)) => {
            return Err(busy).context(
                "an approved command runs outside the sandbox, and its files must not change until it has ended",
            );
        }
    };
    let policy = Policy::Confined(rules);
    let mut words = args.command.into_iter();
    let launch = Launch {
        program: words.next().context("no command is given")?,
        args: words.collect(),
        cwd,
        env: environment::of(std::env::vars_os(), &BTreeMap::new()),
    };
    let confined = measured.sandbox.wrap(launch, &policy)?;
    for notice in &confined.notices {
        eprintln!("raddle: {}", sanitize(&notice.to_string()));
    }
    // Also so that this process survives to clean up.
    raddle_sandbox::ignore_interrupts();
    let status = Command::new(&confined.launch.program)
        .args(&confined.launch.args)
        .current_dir(&confined.launch.cwd)
        .env_clear()
        .envs(confined.launch.env.iter().cloned())
        .status()
        .with_context(|| format!("cannot start {}", confined.launch.program.display()))?;
    let signal = status.signal().map(|it| 128 + it);
    let code = status.code().or(signal).unwrap_or(1);
    Ok(ExitCode::from(code as u8))
}

fn rules(args: &Sandbox, cwd: PathBuf) -> Result<SandboxRules> {
    let real = |paths: &[PathBuf]| -> Result<Vec<PathBuf>> {
        let real = |it: &PathBuf| {
            let unusable = || format!("cannot use {}; name an existing path", it.display());
            std::fs::canonicalize(it).with_context(unusable)
        };
        paths.iter().map(real).collect()
    };
    let mut rules = SandboxRules::read_only();
    if !args.read_only {
        rules.write = real(&args.write)?;
        rules.write.push(cwd);
    }
    if !args.read.is_empty() {
        rules.read = ReadScope::Listed(real(&args.read)?);
    }
    rules.hidden = real(&args.hide)?;
    if args.private_tmp {
        rules.tmp = Tmp::Private;
    }
    if args.network {
        rules.network = Network::Open;
    }
    if args.unprotected {
        rules.protected.clear();
    }
    Ok(rules)
}
