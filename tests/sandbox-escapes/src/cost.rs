//! What the fence costs: a command that does nothing, fenced and not.

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
    /// How often each is started
    #[arg(long, default_value_t = 200)]
    runs: usize,

    /// The binary that is the helper; this one if none is given
    #[arg(long, value_name = "FILE")]
    helper: Option<PathBuf>,
}

const NOTHING: &str = "/bin/true";

impl Cost {
    pub fn run(&self) -> Result<bool> {
        let bubblewrap = find_bubblewrap(None, None)?;
        let helper = match &self.helper {
            Some(helper) => helper.clone(),
            None => std::env::current_exe()?,
        };
        let workspace = tempfile::tempdir()?;
        let plain = Launch {
            program: NOTHING.into(),
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
                NOTHING,
            ]
            .map(Into::into)
            .to_vec(),
            ..plain.clone()
        };
        let first = SandboxHost::new(Tier::A, bubblewrap.clone(), helper.clone());
        let second = SandboxHost::new(Tier::B, bubblewrap.clone(), helper.clone());
        let guarded = Policy::Confined(SandboxRules::workspace_write(vec![
            workspace.path().to_owned(),
        ]));
        let mut loose = SandboxRules::workspace_write(vec![workspace.path().to_owned()]);
        loose.protected.clear();
        let loose = Policy::Confined(loose);

        let mut took = [const { Vec::new() }; 4];
        for _ in 0..self.runs {
            // By turns, so that what else the machine does hits all alike.
            took[0].push(time(|| start(&plain))?);
            took[1].push(time(|| start(&bare))?);
            took[2].push(time(|| {
                let fenced = first.wrap(plain.clone(), &guarded)?;
                start(&fenced.launch)
            })?);
            took[3].push(time(|| start(&second.wrap(plain.clone(), &loose)?.launch))?);
        }
        let [plain, bare, first, second] = took.map(median);
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
        let begun = Instant::now();
        let found = measure(&options);
        let tried = begun.elapsed();
        let begun = Instant::now();
        let cached = measure(&options);
        let read = begun.elapsed();
        ensure!(
            !found.cached && cached.cached,
            "the second self-test was not read from the cache"
        );
        println!(
            "figure: self-test:                 {tried:>8.2?}  tier {}",
            found.sandbox.tier().letter()
        );
        println!("self-test, from the cache: {read:>8.2?}");
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

fn time(mut what: impl FnMut() -> Result<()>) -> Result<Duration> {
    let begun = Instant::now();
    what()?;
    Ok(begun.elapsed())
}

fn median(mut of: Vec<Duration>) -> Duration {
    of.sort();
    of[of.len() / 2]
}
