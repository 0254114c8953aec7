//! `turn-trials`: turns whose model fails in every way we know, through the real program.
//!
//! A server on stdio, `raddle mock` behind it, and sockets that are ruder than the mock can be. Whatever
//! the model does, a turn ends: once, in time, with a typed error, and after its items. So it does on a disk
//! that is full.
//! `cargo xtask prove always-ends` runs it at full size, CI a slice.

#![expect(
    clippy::print_stdout,
    reason = "a developer's command speaks on stdout; it carries no wire"
)]

mod faults;
mod full;
mod mock;
mod process;
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

use crate::faults::{FaultCase, LIMIT, TurnPlan, providers};
use crate::mock::MockModel;
use crate::server::TurnsServer;
use crate::sockets::{ClosedPort, ResettingSocket};
use crate::turn::TurnObservation;

/// How much later than promised an end is waited for, so that its lateness can be told.
const EXTRA_TIMEOUT: Duration = Duration::from_secs(20);

/// Begins the text of a wrong that is nothing but a missed time limit.
const LATE: &str = "late: ";

/// Exit code where nothing else was wrong (`EX_TEMPFAIL` of sysexits.h): CI tries again then.
const LATE_CODE: u8 = 75;

/// How many wrongs are told of each case.
const REPORTED_MAX: usize = 5;

/// Lets the model fail, and sees that every turn ends.
#[derive(Parser)]
struct TurnsArgs {
    /// The program under test.
    #[arg(long)]
    raddle: PathBuf,
    /// How many turns meet each fault.
    #[arg(long, default_value_t = 100)]
    turns: usize,
    /// Fills a disk that is mounted here; started by this trial in a place where it may mount one.
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
    let mut wrongs = Vec::new();
    for case in faults::CASES {
        wrongs.extend(bench.run(case, arguments.turns)?);
    }
    let turns = bench.observations.len();
    wrongs.extend(bench.close()?);
    wrongs.extend(full::run(&arguments.raddle)?);
    println!(
        "figure: {turns} turns over {} kinds of failure, {} did not end as they should",
        faults::CASES.len(),
        wrongs.len()
    );
    let is_only_late = wrongs.iter().all(|it| it.starts_with(LATE));
    Ok(match (wrongs.is_empty(), is_only_late) {
        (true, _) => ExitCode::SUCCESS,
        (false, true) => ExitCode::from(LATE_CODE),
        (false, false) => ExitCode::FAILURE,
    })
}

/// A server, its models, and what was seen of every turn.
struct TurnsHarness {
    _folder: tempfile::TempDir,
    mock: MockModel,
    hanging: ResettingSocket,
    _refusing: ClosedPort,
    server: TurnsServer,
    /// By thread; each has one turn.
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
                faults::CallTarget::HangsUp => hanging.address(),
                faults::CallTarget::Refuses => refusing.address(),
            })
        });
        let config: String = config.collect();
        std::fs::write(folder.path().join("config.toml"), config)?;
        let server = TurnsServer::start(&arguments.raddle, folder.path())?;
        Ok(Self {
            _folder: folder,
            mock,
            hanging,
            _refusing: refusing,
            server,
            observations: HashMap::new(),
        })
    }

    /// All turns of one case side by side. Returns what was wrong with them.
    fn run(&mut self, case: &FaultCase, turns: usize) -> Result<Vec<String>> {
        let asked: Vec<TurnPlan> = (0..turns).map(|number| case.asked(number)).collect();
        let calls_before = self.calls()?;
        let threads = self.start_threads(&asked)?;
        for (thread, asked) in threads.iter().zip(&asked) {
            let input = json!([{"type": "text", "text": asked.says}]);
            self.server
                .ask("turn/start", json!({"threadId": thread, "input": input}))?;
            self.observations
                .insert(thread.clone(), TurnObservation::new());
        }
        let end = Instant::now() + case.longest(2) + EXTRA_TIMEOUT;
        while threads
            .iter()
            .any(|thread| !self.observations[thread].has_ended())
        {
            match self.server.next(end)? {
                Some((when, message)) => self.hear(when, &message)?,
                None => break,
            }
        }
        let calls = self.calls()? - calls_before;

        let mut wrongs = Vec::new();
        for (thread, asked) in threads.iter().zip(&asked) {
            let seen = &self.observations[thread];
            wrongs.extend(seen.wrongs(case, asked).map(|it| of_thread(thread, &it)));
        }
        let expected: usize = asked.iter().map(|asked| case.calls(asked)).sum();
        if calls != expected {
            wrongs.push(format!(
                "the model was called {calls} times, not {expected}"
            ));
        }
        let took = threads
            .iter()
            .filter_map(|thread| self.observations[thread].took());
        println!(
            "{:<20}{turns:>6}{calls:>8}{:>12}{:>12}",
            case.name,
            took.max().unwrap_or_default().as_millis(),
            case.longest(2).as_millis()
        );
        show(&wrongs);
        Ok(wrongs)
    }

    fn start_threads(&mut self, asked: &[TurnPlan]) -> Result<Vec<String>> {
        let mut ids = Vec::new();
        for asked in asked {
            let params = json!({"model": "mock", "modelProvider": asked.provider});
            ids.push(self.server.ask("thread/start", params)?);
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

    /// The answer under this id. What comes before it is heard too.
    fn answer(&mut self, id: u64) -> Result<Value> {
        let end = Instant::now() + EXTRA_TIMEOUT;
        while !self.server.answers.contains_key(&id) {
            match self.server.next(end)? {
                Some((when, message)) => self.hear(when, &message)?,
                None => bail!("no answer came within {} s", EXTRA_TIMEOUT.as_secs()),
            }
        }
        self.server.answers.remove(&id).context("it is there")
    }

    fn hear(&mut self, when: Instant, message: &Value) -> Result<()> {
        if let Some(id) = message["id"].as_u64() {
            if message.get("error").is_some() {
                bail!("a request was refused: {message}");
            }
            self.server.answers.insert(id, message.clone());
            return Ok(());
        }
        let thread = message["params"]["threadId"].as_str().unwrap_or_default();
        if let Some(seen) = self.observations.get_mut(thread) {
            seen.hear(when, message);
        }
        Ok(())
    }

    /// How often the models were called.
    fn calls(&self) -> Result<usize> {
        Ok(self.mock.calls()? + self.hanging.calls())
    }

    /// Ends the server, and sees that nothing more was told of any turn.
    fn close(mut self) -> Result<Vec<String>> {
        let mut wrongs = Vec::new();
        for (when, message) in self.server.end()? {
            self.hear(when, &message)?;
        }
        for (thread, seen) in &self.observations {
            wrongs.extend(seen.afterwards().map(|it| of_thread(thread, &it)));
        }
        println!(
            "{} turns, the limit of silence {} ms",
            self.observations.len(),
            LIMIT.as_millis()
        );
        show(&wrongs);
        Ok(wrongs)
    }
}

/// A wrong with the thread it belongs to; that it is only late stays at its beginning.
fn of_thread(thread: &str, wrong: &str) -> String {
    match wrong.strip_prefix(LATE) {
        Some(wrong) => format!("{LATE}{thread}: {wrong}"),
        None => format!("{thread}: {wrong}"),
    }
}

fn show(wrongs: &[String]) {
    for wrong in wrongs.iter().take(REPORTED_MAX) {
        println!("    WRONG {wrong}");
    }
    if wrongs.len() > REPORTED_MAX {
        println!("    and {} more", wrongs.len() - REPORTED_MAX);
    }
}
