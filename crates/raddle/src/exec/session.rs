//! A run: connect, begin a turn, hear it to its end.

use std::time::Duration;

use raddle_client::{
    Asked, CallError, Client, ConnectError, Follow, Happening, Notice, Notices, Options, Place,
};
use raddle_protocol::methods::{ConfigRead, ThreadList, TurnInterrupt, TurnStart, TurnSteer};
use raddle_protocol::{Notification, ThreadId, TurnInterruptParams, TurnSteerParams, UserInput};
use serde_json::json;
use tokio::time::{Instant, Interval, interval, sleep_until};

use super::asking::{self, Beside, Reply, Terminal};
use super::ending::{Ended, Signals};
use super::events::Event;
use super::fold::{Fold, Outcome};
use super::plan::{Plan, Which};
use super::screen::Screen;
use super::vendor;
use crate::cli::{Color, Unattended};
use crate::print::Printer;

/// How long a turn may take to end once it is interrupted.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often the line that changes is drawn.
const TICK: Duration = Duration::from_millis(120);

/// Whose threads may be gone on with: everyone's.
const KINDS: [&str; 4] = ["cli", "vscode", "exec", "appServer"];

/// The variable in which the stock SDK says who it is.
const ORIGINATOR: &str = "CODEX_INTERNAL_ORIGINATOR_OVERRIDE";

/// Runs the plan, and says how it ended.
pub(super) async fn run(plan: Plan, place: Place) -> Ended {
    let mut signals = match Signals::watch() {
        Ok(signals) => signals,
        Err(error) => return Ended::failed(format!("cannot watch for signals: {error}")),
    };
    let mut out = Out::new(&plan);
    let begun = tokio::select! {
        begun = Session::begin(&plan, place, &mut out) => begun,
        // Nothing runs yet that would have to be told.
        signal = signals.next() => return Ended::Signal(signal),
    };
    let mut session = match begun {
        Ok(session) => session,
        Err(why) => return out.could_not(why),
    };
    let ended = session.hear(&plan, &mut out, &mut signals).await;
    out.screen.clear();
    let client = session.client;
    drop(session.follow);
    tokio::select! {
        () = client.close() => {}
        signal = signals.next() => return Ended::Signal(signal),
    }
    ended
}

/// Where things are printed: events to stdout, or lines for people to stderr.
struct Out {
    printer: Option<Printer>,
    screen: Screen,
    /// Whether stdout cannot be written to, as when a disk is full.
    is_broken: bool,
}

impl Out {
    fn new(plan: &Plan) -> Self {
        let options = &plan.options;
        let is_quiet = options.quiet || options.json;
        Self {
            printer: options.json.then(Printer::new),
            screen: Screen::new(is_quiet, options.color.unwrap_or(Color::Auto)),
            is_broken: false,
        }
    }

    fn event(&mut self, event: &Event) {
        match &mut self.printer {
            Some(printer) => {
                // Our own types have no parts that cannot be written.
                let line = serde_json::to_string(event).unwrap_or_default();
                let printed = printer.line(&line).and_then(|()| printer.flush());
                if let Err(error) = printed
                    && !std::mem::replace(&mut self.is_broken, true)
                {
                    self.screen.say(&format!("cannot write to stdout: {error}"));
                }
            }
            None => self.screen.event(event),
        }
    }

    fn events(&mut self, events: Vec<Event>) {
        for event in &events {
            self.event(event);
        }
    }

    /// Whether nobody reads any more.
    fn is_closed(&self) -> bool {
        self.is_broken || self.printer.as_ref().is_some_and(Printer::is_closed)
    }

    /// A run that did not come to a turn.
    fn could_not(&mut self, why: String) -> Ended {
        let message = why.clone();
        if self.printer.is_some() {
            self.event(&Event::Error {
                message,
                will_retry: false,
            });
        }
        self.screen.clear();
        Ended::failed(why)
    }
}

struct Session {
    client: Client,
    follow: Follow,
    notices: Notices,
    fold: Fold,
    terminal: Terminal,
    /// Since when the turn is to end, and why.
    stopping: Option<(Instant, Ended)>,
    ticks: Interval,
}

impl Session {
    async fn begin(plan: &Plan, place: Place, out: &mut Out) -> Result<Self, String> {
        let client = Client::connect(place, options(), Beside).await;
        let client = client.map_err(|error| unreachable(&error))?;
        let notices = client.notices();
        let follow = open(plan, &client).await?;
        let mut fold = Fold::new(follow.id());
        out.event(&fold.started());
        let turn = client.call::<TurnStart>(plan.turn(follow.id())).await;
        let turn = turn.map_err(|error| format!("the turn cannot be started: {}", said(&error)))?;
        let begun = fold.begin(turn.turn.id);
        out.event(&begun);
        Ok(Self {
            client,
            follow,
            notices,
            fold,
            terminal: Terminal::default(),
            stopping: None,
            ticks: interval(TICK),
        })
    }

    /// Hears the turn to its end.
    async fn hear(&mut self, plan: &Plan, out: &mut Out, signals: &mut Signals) -> Ended {
        loop {
            if let Some(outcome) = self.fold.outcome() {
                let stopped = self.stopping.take().map(|(_, ended)| ended);
                return stopped.unwrap_or_else(|| ended(outcome.clone(), plan));
            }
            if out.is_closed() {
                self.stop(Ended::Unread);
            }
            let until = self.stopping.as_ref().map(|(until, _)| *until);
            let is_live = out.screen.is_live() && !self.terminal.is_waiting();
            tokio::select! {
                happening = self.follow.next() => match happening {
                    Some(happening) => {
                        if let Some(ended) = self.happened(happening, plan, out) {
                            return ended;
                        }
                    }
                    None => return Ended::failed("the server is gone".to_owned()),
                },
                Some(notice) = self.notices.next() => {
                    if let Notice::Told(told) = notice {
                        let events = self.fold.told(&told);
                        out.events(events);
                    }
                }
                line = self.terminal.line() => self.typed(line.as_deref(), out),
                signal = signals.next() => {
                    if self.stopping.is_some() {
                        return Ended::Signal(signal);
                    }
                    self.stop(Ended::Signal(signal));
                }
                () = at(until) => {
                    let stopped = self.stopping.take().map(|(_, ended)| ended);
                    return stopped.unwrap_or(Ended::Unread);
                }
                _ = self.ticks.tick(), if is_live => out.screen.tick(),
            }
        }
    }

    fn happened(&mut self, happening: Happening, plan: &Plan, out: &mut Out) -> Option<Ended> {
        match happening {
            Happening::Told { notification, .. } => {
                out.screen.told(&notification);
                if let Notification::ServerRequestResolved(it) = &*notification
                    && self.terminal.settled(&it.request_id)
                {
                    let is_answered = it.resolved_by.is_some();
                    out.screen.settled(is_answered);
                    if let Some(next) = self.terminal.shown() {
                        out.screen.ask(&next.lines, next.prompt);
                    }
                }
                let events = self.fold.told(&notification);
                out.events(events);
            }
            Happening::Asked(asked) => self.asked(asked, plan, out),
            Happening::Cut { why } => {
                let what = match plan.options.remote {
                    Some(_) => "the connection was lost",
                    None => "the server was lost",
                };
                out.screen
                    .say(&format!("{what} ({why}); going on with another"));
            }
            Happening::Anew(_) => {
                let turns = &self.follow.thread().thread.turns;
                let ours = turns.iter().find(|it| Some(&it.id) == self.fold.turn());
                let events = ours.map(|it| self.fold.seen(it));
                out.events(events.unwrap_or_default());
            }
            Happening::Lost { why } => {
                let why = format!("the thread was lost: {why}");
                let events = self.fold.lost(&why);
                out.events(events);
                return Some(Ended::failed(why));
            }
            Happening::Rejoined | Happening::Unknown { .. } => {}
        }
        None
    }

    fn asked(&mut self, asked: Asked, plan: &Plan, out: &mut Out) {
        if !asking::is_for_people(&asked.question) {
            return;
        }
        let about = asking::about(&asked.question);
        match plan.how {
            Unattended::Ask => {
                let view = self.follow.thread();
                if let Some(shown) = self.terminal.put(asked, view, &plan.cwd) {
                    out.screen.ask(&shown.lines, shown.prompt);
                }
            }
            Unattended::Deny => {
                let line = format!("denied, because nobody can be asked here: {about}");
                out.screen.say(&line);
                self.answer(asking::denied(&asked));
            }
            Unattended::Rules => out.screen.say(&format!(
                "waits until someone answers, as rules.toml says: {about}"
            )),
        }
    }

    fn typed(&mut self, line: Option<&str>, out: &mut Out) {
        match line {
            Some(line) => {
                if let Some(reply) = self.terminal.typed(line) {
                    self.answer(reply);
                }
                if let Some(next) = self.terminal.shown() {
                    out.screen.ask(&next.lines, next.prompt);
                }
            }
            None => {
                for reply in self.terminal.hung_up() {
                    self.answer(reply);
                }
            }
        }
    }

    /// Answers, after what the agent is to know beside it, so that it reads both at once.
    fn answer(&self, reply: Reply) {
        let client = self.client.clone();
        let steer = reply.reason.and_then(|reason| {
            Some(TurnSteerParams {
                thread_id: self.follow.id(),
                expected_turn_id: self.fold.turn()?.clone(),
                input: vec![UserInput::text(reason)],
                additional_context: None,
                client_user_message_id: None,
                responsesapi_client_metadata: None,
                responsesapi_client_metadata_patch: None,
                client_request_id: None,
            })
        });
        tokio::spawn(async move {
            if let Some(params) = steer
                && let Err(error) = client.call::<TurnSteer>(params).await
            {
                tracing::warn!(%error, "the reason did not reach the agent");
            }
            if let Err(error) = client.answer(&reply.id, &reply.answer).await {
                tracing::warn!(%error, "an answer did not reach the server");
            }
        });
    }

    /// Has the turn ended, and the run after it in any case.
    fn stop(&mut self, ended: Ended) {
        if self.stopping.is_some() {
            return;
        }
        self.stopping = Some((Instant::now() + PATIENCE, ended));
        let Some(turn_id) = self.fold.turn().cloned() else {
            return;
        };
        let (client, thread_id) = (self.client.clone(), self.follow.id());
        tokio::spawn(async move {
            let params = TurnInterruptParams {
                thread_id,
                turn_id,
                client_request_id: None,
            };
            // It may be over by then.
            if let Err(error) = client.call::<TurnInterrupt>(params).await {
                tracing::debug!(%error, "the turn was not interrupted");
            }
        });
    }
}

/// Opens the thread that the plan is about.
async fn open(plan: &Plan, client: &Client) -> Result<Follow, String> {
    let thread = match plan.which {
        Which::New => {
            let mut params = plan.start();
            params.model_provider = provider(plan, client).await?;
            let opened = client.start(params).await;
            return opened
                .map_err(|error| format!("the thread cannot be started: {}", said(&error)));
        }
        Which::Old(thread) => thread,
        Which::Last { of_any_folder } => last(plan, client, of_any_folder).await?,
    };
    let opened = client.resume(plan.resume(thread)).await;
    opened.map_err(|error| format!("the thread {thread} cannot be resumed: {}", said(&error)))
}

/// The newest thread.
async fn last(plan: &Plan, client: &Client, of_any_folder: bool) -> Result<ThreadId, String> {
    let cwd = (!of_any_folder).then(|| plan.cwd.display().to_string());
    let params = json!({ "limit": 1, "sortKey": "updated_at", "cwd": cwd, "sourceKinds": KINDS });
    let params = serde_json::from_value(params).map_err(|error| error.to_string())?;
    let found = client.call::<ThreadList>(params).await;
    let found = found.map_err(|error| format!("the threads cannot be listed: {}", said(&error)))?;
    match found.data.first() {
        Some(thread) => Ok(thread.id),
        None if of_any_folder => Err("there is no thread to go on with".to_owned()),
        None => Err(format!(
            "there is no thread of {} to go on with; --all looks in every folder",
            plan.cwd.display()
        )),
    }
}

/// Whom to ask, where only the SDK's key or address says so.
async fn provider(plan: &Plan, client: &Client) -> Result<Option<String>, String> {
    if plan.options.remote.is_some() || !vendor::is_given(&plan.settings) {
        return Ok(None);
    }
    let params = raddle_protocol::ConfigReadParams {
        cwd: None,
        include_layers: false,
    };
    let read = client.call::<ConfigRead>(params).await;
    let config = read
        .map_err(|error| format!("the configuration cannot be read: {}", said(&error)))?
        .config;
    let model = plan.options.model.as_deref().or(config["model"].as_str());
    let is_named = config["model_provider"].is_string() || model.is_some_and(|it| it.contains('/'));
    Ok((!is_named).then(|| vendor::PROVIDER.to_owned()))
}

fn options() -> Options {
    let is_name = |name: &String| !name.is_empty() && name.chars().all(|it| it.is_ascii_graphic());
    let name = std::env::var(ORIGINATOR).ok().filter(is_name);
    let name = name.unwrap_or_else(|| "raddle-exec".to_owned());
    let mut options = Options::new(name, env!("CARGO_PKG_VERSION"));
    // For the folders that `--add-dir` names.
    options.experimental = true;
    options
}

fn unreachable(error: &ConnectError) -> String {
    match error {
        // What it said of it is on stderr, just above.
        ConnectError::Ended(_) => format!("{error}; `raddle app-server </dev/null` says more"),
        error => error.to_string(),
    }
}

fn said(error: &CallError) -> String {
    match error {
        CallError::Refused(error) => error.message.to_string(),
        error => error.to_string(),
    }
}

/// How the run ended, when the turn did.
fn ended(outcome: Outcome, plan: &Plan) -> Ended {
    match outcome {
        Outcome::Completed(message) => {
            let checked = plan.schema.as_ref().map(|schema| match &message {
                Some(text) => schema.check(text),
                None => Err("there is none".to_owned()),
            });
            match checked {
                Some(Err(why)) => Ended::Unfit { why, message },
                _ => Ended::Completed(message),
            }
        }
        Outcome::Failed(failure) if failure.is_budget => Ended::Budget(failure.message),
        Outcome::Failed(failure) => Ended::TurnFailed(failure.message),
        Outcome::Interrupted => Ended::Interrupted,
    }
}

/// Resolves then; without a time, never.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
