//! `raddle sandbox`: a command inside the fence, for people.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use raddle_sandbox::{
    Launch, Measured, Network, Options, Policy, Read, Rules, Tier, Tmp, environment,
};

use crate::cli::Sandbox;
use crate::home::Home;

/// Where programs are looked for without a `PATH`, as a shell does.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The fence of this machine.
pub(crate) fn measure(again: bool) -> Result<Measured> {
    let options = options(&Home::find()?)?;
    if let Some(cache) = options.cache.as_ref().filter(|_| again) {
        // One that is not there is as good as removed.
        let _ = std::fs::remove_file(cache);
    }
    Ok(raddle_sandbox::measure(&options))
}

/// The same for a server, which does not wait for it.
pub(crate) fn measuring(home: &Home) -> Result<impl Fn() -> Measured + use<>> {
    let options = options(home)?;
    Ok(move || raddle_sandbox::measure(&options))
}

fn options(home: &Home) -> Result<Options> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| USUAL_PATH.into());
    Ok(Options {
        helper: std::env::current_exe().context("where this program is")?,
        bubblewrap: raddle_sandbox::find_bubblewrap(&path),
        scratch: std::env::temp_dir(),
        cache: Some(home.state.join("fence")),
    })
}

/// Runs the command and ends as it does.
pub(crate) fn run(args: Sandbox) -> Result<ExitCode> {
    let cwd = std::env::current_dir().context("the current folder")?;
    let home = Home::find()?;
    let mut rules = rules(&args, cwd.clone())?;
    let measured = raddle_sandbox::measure(&options(&home)?);
    if measured.fence.tier() == Tier::A {
        // Keys may be in the configuration, and what was said in threads, unless they are worked on by name. Only a
        // view of the disk of its own hides anything.
        let own = home.paths().own().into_iter();
        let own = own.map(|it| std::fs::canonicalize(&it).unwrap_or(it));
        let own: Vec<PathBuf> = own.collect();
        let is_named = |path: &&PathBuf| {
            let mut around = own.iter().filter(|it| path.starts_with(it));
            around.any(|folder| rules.write.iter().any(|it| it.starts_with(folder)))
        };
        let hidden: Vec<PathBuf> = own.iter().filter(|it| !is_named(it)).cloned().collect();
        rules.hidden.extend(hidden);
    }
    let policy = Policy::Fenced(rules);
    let mut words = args.command.into_iter();
    let launch = Launch {
        program: words.next().context("which command?")?,
        args: words.collect(),
        cwd,
        env: environment::of(std::env::vars_os(), &BTreeMap::new()),
    };
    let fenced = measured.fence.wrap(launch, &policy)?;
    // Also so that we live to tidy up.
    raddle_sandbox::ignore_interrupts();
    let status = Command::new(&fenced.launch.program)
        .args(&fenced.launch.args)
        .current_dir(&fenced.launch.cwd)
        .env_clear()
        .envs(fenced.launch.env.iter().cloned())
        .status()
        .with_context(|| format!("cannot start {}", fenced.launch.program.display()))?;
    let signal = status.signal().map(|it| 128 + it);
    let code = status.code().or(signal).unwrap_or(1);
    Ok(ExitCode::from(code as u8))
}

fn rules(args: &Sandbox, cwd: PathBuf) -> Result<Rules> {
    let real = |paths: &[PathBuf]| -> Result<Vec<PathBuf>> {
        let real =
            |it: &PathBuf| std::fs::canonicalize(it).with_context(|| it.display().to_string());
        paths.iter().map(real).collect()
    };
    let mut rules = Rules::read_only();
    if !args.read_only {
        rules.write = real(&args.write)?;
        rules.write.push(cwd);
    }
    if !args.read.is_empty() {
        rules.read = Read::Listed(real(&args.read)?);
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
