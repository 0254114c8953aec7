//! `turn-trials`: turns whose model fails in every known way, through the real program.
//!
//! A server on stdio uses `raddle mock` and sockets that fail in ways the mock cannot. Regardless
//! of the model's behaviour, a turn ends: once, in time, with a typed error, and after its items.
//! The same holds on a full disk. `cargo xtask prove always-ends` runs it at full size, CI a slice.

#![expect(
    clippy::print_stdout,
    reason = "a developer's command speaks on stdout; it carries no wire"
)]

mod faults;
mod full;
mod server;
mod sockets;
mod turn;

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use serde_json::{Value, json};
use support::{MockModel, StdioServer};

use crate::faults::{FaultCase, LIMIT, TurnPlan, providers};
use crate::sockets::{ClosedPort, ResettingSocket};
use crate::turn::TurnObservation;

/// Additional wait for a late end, so that the delay can be reported.
const EXTRA_TIMEOUT: Duration = Duration::from_secs(20);

/// Prefix of a problem that is only a missed time limit.
const LATE: &str = "late: ";

/// Exit code if only time limits were missed (`EX_TEMPFAIL` of sysexits.h): CI retries then.
const LATE_CODE: u8 = 75;

/// Maximum number of reported problems of each case.
const REPORTED_MAX: usize = 5;

/// Makes the model fail, and checks that every turn ends.
#[derive(Parser)]
struct TurnsArgs {
    /// Path of the program under test.
    #[arg(long)]
    raddle: PathBuf,
    /// Number of turns for each fault.
    #[arg(long, default_value_t = 100)]
    turns: usize,
    /// The threads are not on the disk of the home, so a full disk is not tried.
    #[arg(long)]
    remote_store: bool,
    /// Fills a disk mounted at this path; used internally where the trial may mount one.
    #[arg(long, hide = true)]
    full_disk: Option<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let arguments = TurnsArgs::parse();
    if let Some(folder) = &arguments.full_disk {
        full::inside(&arguments.raddle, folder)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut bench = TurnsHarness::open(&arguments)?;
    println!(
        "{:<20}{:>6}{:>8}{:>12}{:>12}",
        "", "turns", "calls", "longest ms", "of at most"
    );
    let mut problems = Vec::new();
    for case in faults::CASES {
        problems.extend(bench.run(case, arguments.turns)?);
    }
    let turns = bench.observations.len();
    problems.extend(bench.close()?);
    if !arguments.remote_store {
        problems.extend(full::run(&arguments.raddle)?);
    }
    println!(
        "figure: {turns} turns over {} kinds of failure, {} did not end as they should",
        faults::CASES.len(),
        problems.len()
    );
    let is_only_late = problems.iter().all(|it| it.starts_with(LATE));
    Ok(match (problems.is_empty(), is_only_late) {
        (true, _) => ExitCode::SUCCESS,
        (false, true) => ExitCode::from(LATE_CODE),
        (false, false) => ExitCode::FAILURE,
    })
}

/// A server, its models, and the observations of every turn.
struct TurnsHarness {
    _folder: tempfile::TempDir,
    mock: MockModel,
    hanging: ResettingSocket,
    _refusing: ClosedPort,
    server: StdioServer,
    /// Responses that were not consumed yet.
    answers: HashMap<u64, Value>,
    /// Observations by thread; each thread has one turn.
    observations: HashMap<String, TurnObservation>,
}

impl TurnsHarness {
    fn open(arguments: &TurnsArgs) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mock = MockModel::start(&arguments.raddle, folder.path())?;
        let hanging = ResettingSocket::open()?;
        let refusing = ClosedPort::open()?;
        let config = providers().map(|provider| {
            provider.config(match provider.model {
                faults::CallTarget::Mock => mock.address(),
                faults::CallTarget::Reset => hanging.address(),
                faults::CallTarget::Refused => refusing.address(),
            })
        });
        let config: String = config.collect();
        std::fs::write(folder.path().join("config.toml"), config)?;
        let server = server::start(&arguments.raddle, folder.path())?;
        Ok(Self {
            _folder: folder,
            mock,
            hanging,
            _refusing: refusing,
            server,
            answers: HashMap::new(),
            observations: HashMap::new(),
        })
    }

    /// Runs all turns of one case concurrently. Returns the problems.
    fn run(&mut self, case: &FaultCase, turns: usize) -> Result<Vec<String>> {
        let plans: Vec<TurnPlan> = (0..turns).map(|number| case.plan(number)).collect();
        let calls_before = self.calls()?;
        let threads = self.start_threads(&plans)?;
        for (thread, plan) in threads.iter().zip(&plans) {
            let input = json!([{"type": "text", "text": plan.prompt}]);
            self.server
                .send_request("turn/start", &json!({"threadId": thread, "input": input}))?;
            self.observations
                .insert(thread.clone(), TurnObservation::new());
        }
        let end = Instant::now() + case.longest(2) + EXTRA_TIMEOUT;
        while threads
            .iter()
            .any(|thread| !self.observations[thread].has_ended())
        {
            match self.server.next_timed(end)? {
                Some((when, message)) => self.receive(when, &message)?,
                None => break,
            }
        }
        let calls = self.calls()? - calls_before;

        let mut problems = Vec::new();
        for (thread, plan) in threads.iter().zip(&plans) {
            let observation = &self.observations[thread];
            problems.extend(
                observation
                    .problems(case, plan)
                    .map(|it| of_thread(thread, &it)),
            );
        }
        let expected: usize = plans.iter().map(|plan| case.calls(plan)).sum();
        if calls != expected {
            problems.push(format!(
                "the model was called {calls} times, not {expected}"
            ));
        }
        let durations = threads
            .iter()
            .filter_map(|thread| self.observations[thread].duration());
        println!(
            "{:<20}{turns:>6}{calls:>8}{:>12}{:>12}",
            case.name,
            durations.max().unwrap_or_default().as_millis(),
            case.longest(2).as_millis()
        );
        show(&problems);
        Ok(problems)
    }

    fn start_threads(&mut self, plans: &[TurnPlan]) -> Result<Vec<String>> {
        let mut ids = Vec::new();
        for plan in plans {
            let params = json!({"model": "mock", "modelProvider": plan.provider});
            ids.push(self.server.send_request("thread/start", &params)?);
        }
        ids.iter().map(|id| self.started(*id)).collect()
    }

    fn started(&mut self, id: u64) -> Result<String> {
        let answer = self.answer(id)?;
        let thread = answer["result"]["thread"]["id"].as_str();
        Ok(thread
            .with_context(|| format!("no thread was started: {answer}"))?
            .to_owned())
    }

    /// Returns the response with this id. Notifications that arrive before it are recorded too.
    fn answer(&mut self, id: u64) -> Result<Value> {
        let end = Instant::now() + EXTRA_TIMEOUT;
        while !self.answers.contains_key(&id) {
            match self.server.next_timed(end)? {
                Some((when, message)) => self.receive(when, &message)?,
                None => bail!("no answer came within {} s", EXTRA_TIMEOUT.as_secs()),
            }
        }
        self.answers.remove(&id).context("it is there")
    }

    fn receive(&mut self, when: Instant, message: &Value) -> Result<()> {
        if let Some(id) = message["id"].as_u64() {
            if message.get("error").is_some() {
                bail!("a request failed: {message}");
            }
            self.answers.insert(id, message.clone());
            return Ok(());
        }
        let thread = message["params"]["threadId"].as_str().unwrap_or_default();
        if let Some(observation) = self.observations.get_mut(thread) {
            observation.observe(when, message);
        }
        Ok(())
    }

    /// Returns the number of model calls.
    fn calls(&self) -> Result<usize> {
        Ok(self.mock.calls()? + self.hanging.calls())
    }

    /// Ends the server, and checks that no notification followed the end of any turn.
    fn close(mut self) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        for (when, message) in self.server.end()? {
            self.receive(when, &message)?;
        }
        for (thread, observation) in &self.observations {
            problems.extend(observation.afterwards().map(|it| of_thread(thread, &it)));
        }
        println!(
            "{} turns, the limit of silence {} ms",
            self.observations.len(),
            LIMIT.as_millis()
        );
        show(&problems);
        Ok(problems)
    }
}

/// Adds the thread to a problem; the prefix of a late one stays in front.
fn of_thread(thread: &str, problem: &str) -> String {
    match problem.strip_prefix(LATE) {
        Some(problem) => format!("{LATE}{thread}: {problem}"),
        None => format!("{thread}: {problem}"),
    }
}

fn show(problems: &[String]) {
    for problem in problems.iter().take(REPORTED_MAX) {
        println!("    WRONG {problem}");
    }
    if problems.len() > REPORTED_MAX {
        println!("    and {} more", problems.len() - REPORTED_MAX);
    }
}
