//! Cost of the sandbox: a command that does nothing, with and without it.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Args;
use raddle_sandbox::{
    Launch, Options, Policy, SandboxHost, SandboxRules, Tier, find_bubblewrap, measure,
};

#[derive(Args)]
pub struct Cost {
    /// Number of runs of each
    #[arg(long, default_value_t = 200)]
    runs: usize,

    /// The binary that is the helper; the default is this one
    #[arg(long, value_name = "FILE")]
    helper: Option<PathBuf>,
}

const TRUE_PROGRAM: &str = "/bin/true";

impl Cost {
    pub fn run(&self) -> Result<bool> {
        let bubblewrap = find_bubblewrap(None, None)?;
        let helper = match &self.helper {
            Some(helper) => helper.clone(),
            None => std::env::current_exe()?,
        };
        let workspace = tempfile::tempdir()?;
        let plain = Launch {
            program: TRUE_PROGRAM.into(),
            args: Vec::new(),
            cwd: workspace.path().to_owned(),
            env: Vec::new(),
        };
        let bare = Launch {
            program: bubblewrap.clone().into(),
            args: [
                "--unshare-all",
                "--ro-bind",
                "/",
                "/",
                "--dev",
                "/dev",
                "--proc",
                "/proc",
                TRUE_PROGRAM,
            ]
            .map(Into::into)
            .to_vec(),
            ..plain.clone()
        };
        let first = SandboxHost::new(Tier::A, bubblewrap.clone(), helper.clone());
        let second = SandboxHost::new(Tier::B, bubblewrap.clone(), helper.clone());
        let protected_policy = Policy::Confined(SandboxRules::workspace_write(vec![
            workspace.path().to_owned(),
        ]));
        let mut unprotected = SandboxRules::workspace_write(vec![workspace.path().to_owned()]);
        unprotected.protected.clear();
        let unprotected = Policy::Confined(unprotected);

        let mut durations = [const { Vec::new() }; 4];
        for _ in 0..self.runs {
            // Interleaved, so that other load on the machine affects all alike.
            durations[0].push(time(|| start(&plain))?);
            durations[1].push(time(|| start(&bare))?);
            durations[2].push(time(|| {
                let confined = first.wrap(plain.clone(), &protected_policy)?;
                start(&confined.launch)
            })?);
            durations[3].push(time(|| {
                start(&second.wrap(plain.clone(), &unprotected)?.launch)
            })?);
        }
        let [plain, bare, first, second] = durations.map(median);
        let ratio = |a: Duration, b: Duration| a.as_secs_f64() / b.as_secs_f64();
        println!(
            "figure: plain spawn of true:       {plain:>8.2?} (median of {})",
            self.runs
        );
        println!(
            "figure: bare bubblewrap, all:      {bare:>8.2?}  {:.2} of plain",
            ratio(bare, plain)
        );
        println!(
            "figure: sandboxed, first tier:        {first:>8.2?}  {:.2} of plain, {:.2} of bare bubblewrap",
            ratio(first, plain),
            ratio(first, bare)
        );
        println!(
            "figure: sandboxed, second tier:       {second:>8.2?}  {:.2} of plain",
            ratio(second, plain)
        );

        let scratch = tempfile::tempdir()?;
        let options = Options {
            helper,
            bubblewrap: Ok(bubblewrap),
            scratch: scratch.path().to_owned(),
            cache: Some(scratch.path().join("cache")),
        };
        let started = Instant::now();
        let measured = measure(&options);
        let uncached_time = started.elapsed();
        let started = Instant::now();
        let cached = measure(&options);
        let cached_time = started.elapsed();
        ensure!(
            !measured.cached && cached.cached,
            "the second self-test was not read from the cache"
        );
        println!(
            "figure: self-test:                 {uncached_time:>8.2?}  tier {}",
            measured.sandbox.tier().letter()
        );
        println!("self-test, from the cache: {cached_time:>8.2?}");
        Ok(true)
    }
}

fn start(launch: &Launch) -> Result<()> {
    let status = Command::new(&launch.program)
        .args(&launch.args)
        .env_clear()
        .envs(launch.env.iter().cloned())
        .current_dir(&launch.cwd)
        .stdin(Stdio::null())
        .status()?;
    ensure!(
        status.success(),
        "{} ended with {status}",
        launch.program.display()
    );
    Ok(())
}

fn time(mut work: impl FnMut() -> Result<()>) -> Result<Duration> {
    let started = Instant::now();
    work()?;
    Ok(started.elapsed())
}

fn median(mut durations: Vec<Duration>) -> Duration {
    durations.sort();
    durations[durations.len() / 2]
}
