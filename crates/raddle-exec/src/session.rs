//! A run: connects, starts a turn and follows it to its end.

use std::time::Duration;

use raddle_client::{
    CallError, Client, Notice, Notices, OpenQuestion, ServerAddress, ThreadEvent, ThreadFollower,
};
use raddle_console::Printer;
use raddle_protocol::methods::{ThreadDelete, TurnInterrupt, TurnStart, TurnSteer};
use raddle_protocol::{
    Notification, RequestId, ThreadDeleteParams, ThreadId, ThreadStatus, TurnInterruptParams,
    TurnStartParams, TurnSteerParams, UserInput,
};
use tokio::time::{Instant, Interval, interval, sleep_until};

use super::ending::{RunEnd, Signals};
use super::error::full_text;
use super::events::Event;
use super::fold::{Fold, TurnOutcome};
use super::opening::{self, OpenError, error_text};
use super::options::{ThreadSelector, Unattended};
use super::plan::Plan;
use super::questions::{self, QuestionReply, TerminalPrompt};
use super::screen::Screen;

/// How long an interrupted turn may take to end.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(10);

/// Reason why a run leaves a question to other clients.
const NO_TERMINAL: &str = "there is no terminal to ask on";

/// The refresh interval of the status line.
const TICK: Duration = Duration::from_millis(120);

/// Runs the plan and returns its end.
pub(crate) async fn run(plan: Plan, address: ServerAddress) -> RunEnd {
    let mut signals = match Signals::watch() {
        Ok(signals) => signals,
        Err(error) => return RunEnd::failed(format!("cannot watch for signals: {error}")),
    };
    let mut out = RunOutput::new(&plan);
    let opened = tokio::select! {
        opened = ExecSession::open(&plan, address, &mut out) => opened,
        // No turn runs yet that would have to be interrupted.
        signal = signals.next() => return RunEnd::Signal(signal),
    };
    let (mut session, turn) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            let ended = out.could_not(full_text(&error));
            return if error.is_explained() {
                RunEnd::NoServer
            } else {
                ended
            };
        }
    };
    let ended = match session.begin(turn, &mut out, &mut signals).await {
        Ok(()) => session.follow_turn(&plan, &mut out, &mut signals).await,
        Err(ended) => ended,
    };
    out.screen.finish();
    if session.is_hurried {
        return ended;
    }
    let is_unused = session.is_unused(&plan);
    let (client, thread_id) = (session.client, session.follow.id());
    drop(session.follow);
    let closing = async {
        if is_unused && delete(&client, thread_id).await {
            out.screen
                .say("the thread was deleted, because it has no turn");
        }
        client.close().await;
    };
    tokio::select! {
        () = closing => ended,
        // The outcome of the turn and its answer stay valid.
        _ = signals.next() => ended,
    }
}

/// The destination of output: events on stdout, or lines for the user on stderr.
struct RunOutput {
    printer: Option<Printer>,
    screen: Screen,
    /// Whether writing to stdout failed, as with a full disk.
    is_broken: bool,
}

impl RunOutput {
    fn new(plan: &Plan) -> Self {
        let options = &plan.options;
        let is_quiet = options.quiet || options.json;
        Self {
            printer: options.json.then(Printer::new),
            screen: Screen::new(is_quiet, options.color),
            is_broken: false,
        }
    }

    fn event(&mut self, event: &Event) {
        match &mut self.printer {
            Some(printer) => {
                // These types always serialize.
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

    /// Whether stdout is closed or failed.
    fn is_closed(&self) -> bool {
        self.is_broken || self.printer.as_ref().is_some_and(Printer::is_closed)
    }

    /// Ends a run that could not start a turn.
    fn could_not(&mut self, why: String) -> RunEnd {
        let message = why.clone();
        if self.printer.is_some() {
            self.event(&Event::Error {
                message,
                will_retry: false,
            });
        }
        self.screen.finish();
        RunEnd::failed(why)
    }
}

struct ExecSession {
    client: Client,
    follow: ThreadFollower,
    notices: Notices,
    fold: Fold,
    terminal: TerminalPrompt,
    /// The deadline for the interrupted turn, and the end of the run that follows.
    stopping: Option<(Instant, RunEnd)>,
    /// Whether a turn already ran when this run sent its input, which then joined that turn.
    has_joined: bool,
    /// Whether the server rejected `turn/start`.
    is_turn_refused: bool,
    /// Whether to exit without closing the connection.
    is_hurried: bool,
    ticks: Interval,
}

impl ExecSession {
    /// Opens the thread. Returns the parameters of the turn to start.
    async fn open(
        plan: &Plan,
        address: ServerAddress,
        out: &mut RunOutput,
    ) -> Result<(Self, TurnStartParams), OpenError> {
        let client = opening::connect(address).await?;
        let notices = client.notices();
        let follow = opening::open(plan, &client).await?;
        let mut turn = plan.turn(follow.id());
        turn.approval_policy = opening::asking_again(plan, &client, &follow).await?;
        let fold = Fold::new(follow.id());
        out.event(&fold.started());
        let session = Self {
            client,
            follow,
            notices,
            fold,
            terminal: TerminalPrompt::default(),
            stopping: None,
            has_joined: false,
            is_turn_refused: false,
            is_hurried: false,
            ticks: interval(TICK),
        };
        Ok((session, turn))
    }

    /// Starts the turn. Waits for the response even if the run is to end: a remote server would
    /// otherwise run a turn whose id is unknown here.
    async fn begin(
        &mut self,
        turn: TurnStartParams,
        out: &mut RunOutput,
        signals: &mut Signals,
    ) -> Result<(), RunEnd> {
        self.has_joined = matches!(self.follow.thread().thread.status, ThreadStatus::Active(_));
        let client = self.client.clone();
        let begun = client.call::<TurnStart>(turn);
        tokio::pin!(begun);
        let begun = loop {
            tokio::select! {
                begun = &mut begun => break begun,
                signal = signals.next() => self.signalled(signal, out)?,
                ended = stop_deadline(&self.stopping) => return Err(ended),
            }
        };
        match begun {
            Ok(started) => {
                let event = self.fold.begin(started.turn.id);
                out.event(&event);
            }
            Err(error) => {
                self.is_turn_refused = matches!(error, CallError::Refused(_));
                let stopped = self.stopping.take().map(|(_, ended)| ended);
                let why = || format!("the turn cannot be started: {}", error_text(&error));
                return Err(stopped.unwrap_or_else(|| out.could_not(why())));
            }
        }
        if self.stopping.is_some() {
            self.interrupt();
        }
        Ok(())
    }

    /// Follows the turn to its end.
    async fn follow_turn(
        &mut self,
        plan: &Plan,
        out: &mut RunOutput,
        signals: &mut Signals,
    ) -> RunEnd {
        loop {
            if let Some(outcome) = self.fold.outcome() {
                let stopped = self.stopping.take().map(|(_, ended)| ended);
                return stopped.unwrap_or_else(|| ended(outcome.clone(), plan));
            }
            if out.is_closed() {
                self.stop(RunEnd::Unread);
            }
            let is_live = out.screen.is_live() && !self.terminal.is_waiting();
            tokio::select! {
                event = self.follow.next() => match event {
                    Some(event) => {
                        if let Some(ended) = self.on_thread_event(event, plan, out) {
                            return ended;
                        }
                    }
                    None => return RunEnd::failed("the server is gone".to_owned()),
                },
                Some(notice) = self.notices.next() => {
                    if let Notice::Received(notification) = notice {
                        let events = self.fold.on_notification(&notification);
                        out.events(events);
                    }
                }
                line = self.terminal.line() => self.typed(line.as_deref(), out),
                signal = signals.next() => {
                    if let Err(ended) = self.signalled(signal, out) {
                        return ended;
                    }
                }
                ended = stop_deadline(&self.stopping) => return ended,
                _ = self.ticks.tick(), if is_live => out.screen.tick(),
            }
        }
    }

    /// Whether the run created a thread that has no turn, since `turn/start` was refused. A turn
    /// that failed later stays, with its prompt, to be continued after the cause is removed. Other
    /// clients of a remote server may already use the thread.
    fn is_unused(&self, plan: &Plan) -> bool {
        let options = &plan.options;
        let is_new = options.thread == ThreadSelector::New && !options.ephemeral;
        is_new && self.is_turn_refused && options.remote.is_none()
    }

    fn on_thread_event(
        &mut self,
        event: ThreadEvent,
        plan: &Plan,
        out: &mut RunOutput,
    ) -> Option<RunEnd> {
        match event {
            ThreadEvent::Notification { notification, .. } => {
                out.screen.on_notification(&notification);
                if let Notification::ServerRequestResolved(it) = &*notification
                    && self.terminal.settled(&it.request_id)
                {
                    let is_answered = it.resolved_by.is_some();
                    out.screen.settled(is_answered);
                    if let Some(next) = self.terminal.next() {
                        out.screen.ask(&next);
                    }
                }
                let events = self.fold.on_notification(&notification);
                out.events(events);
            }
            ThreadEvent::Question(question) => self.on_question(question, plan, out),
            ThreadEvent::Disconnected { why } => {
                let what = match plan.options.remote {
                    Some(_) => "the connection was lost",
                    None => "the server was lost",
                };
                out.screen
                    .say(&format!("{what} ({why}); going on with another"));
            }
            ThreadEvent::Reset(_) => {
                let turns = &self.follow.thread().thread.turns;
                let ours = turns.iter().find(|it| Some(&it.id) == self.fold.turn());
                let events = ours.map(|it| self.fold.on_snapshot(it));
                out.events(events.unwrap_or_default());
            }
            ThreadEvent::Lost { why } => {
                let why = format!("the thread was lost: {why}");
                let events = self.fold.on_lost(&why);
                out.events(events);
                return Some(RunEnd::failed(why));
            }
            ThreadEvent::Reconnected | ThreadEvent::Unknown { .. } => {}
        }
        None
    }

    fn on_question(&mut self, question: OpenQuestion, plan: &Plan, out: &mut RunOutput) {
        if !questions::is_for_people(&question.question) {
            return;
        }
        let about = questions::about(&question.question);
        match plan.unattended {
            Unattended::Ask => {
                let view = self.follow.thread();
                if let Some(shown) = self.terminal.put(question, view, &plan.cwd) {
                    out.screen.ask(&shown);
                }
            }
            // The turn of another client, whose user can answer. Without such a client the server
            // declines.
            Unattended::Deny if self.has_joined => {
                let line = format!("left to other clients of the running turn: {about}");
                out.screen.say(&line);
                self.cannot_answer(question.id);
            }
            Unattended::Deny => {
                let line = format!("denied, because there is no terminal to ask on: {about}");
                out.screen.say(&line);
                self.answer(questions::denied(&question));
            }
            Unattended::Rules => out.screen.say(&format!(
                "waits until another client answers, as rules.toml says: {about}"
            )),
        }
    }

    fn typed(&mut self, line: Option<&str>, out: &mut RunOutput) {
        match line {
            Some(line) => {
                if let Some(reply) = self.terminal.typed(line) {
                    self.answer(reply);
                    out.screen.answered();
                }
                if let Some(next) = self.terminal.next() {
                    out.screen.ask(&next);
                }
            }
            None => {
                for reply in self.terminal.hung_up() {
                    self.answer(reply);
                }
                out.screen.finish();
            }
        }
    }

    /// Sends an answer, after the message for the agent, so that the agent reads both at once.
    fn answer(&self, reply: QuestionReply) {
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
                tracing::warn!(
                    error = error.to_string(),
                    "cannot send the reason to the agent"
                );
            }
            if let Err(error) = client.answer(&reply.id, &reply.answer).await {
                tracing::warn!(
                    error = error.to_string(),
                    "cannot send an answer to the server"
                );
            }
        });
    }

    /// Reports that no user of this run can answer.
    fn cannot_answer(&self, id: RequestId) {
        let client = self.client.clone();
        tokio::spawn(async move {
            if let Err(error) = client.cannot_answer(&id, NO_TERMINAL).await {
                tracing::warn!(
                    error = error.to_string(),
                    "cannot send an answer to the server"
                );
            }
        });
    }

    /// Interrupts the turn at the first signal, and ends the run at the second.
    fn signalled(&mut self, signal: u8, out: &mut RunOutput) -> Result<(), RunEnd> {
        if self.stopping.is_some() {
            self.is_hurried = true;
            return Err(RunEnd::Signal(signal));
        }
        if out.screen.is_live() {
            out.screen
                .say("interrupting the turn; a second signal ends at once");
        }
        self.stop(RunEnd::Signal(signal));
        Ok(())
    }

    /// Interrupts the turn, and ends the run with it or at the deadline.
    fn stop(&mut self, ended: RunEnd) {
        if self.stopping.is_none() {
            self.stopping = Some((Instant::now() + INTERRUPT_TIMEOUT, ended));
            self.interrupt();
        }
    }

    /// Interrupts the turn, if its id is known.
    fn interrupt(&self) {
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
            // The turn may have ended by then.
            if let Err(error) = client.call::<TurnInterrupt>(params).await {
                tracing::debug!(error = error.to_string(), "the turn was not interrupted");
            }
        });
    }
}

/// Deletes a thread without turns. Returns whether it is gone.
async fn delete(client: &Client, thread_id: ThreadId) -> bool {
    let params = ThreadDeleteParams {
        thread_id,
        client_request_id: None,
    };
    let deleted = client.call::<ThreadDelete>(params).await;
    if let Err(error) = &deleted {
        tracing::debug!(
            error = error.to_string(),
            "a thread without turns was not deleted"
        );
    }
    deleted.is_ok()
}

/// Maps the outcome of the turn to the end of the run.
fn ended(outcome: TurnOutcome, plan: &Plan) -> RunEnd {
    match outcome {
        TurnOutcome::Completed(message) => {
            let checked = plan.schema.as_ref().map(|schema| match &message {
                Some(text) => schema.check(text).map_err(|error| error.to_string()),
                None => Err("there is none".to_owned()),
            });
            match checked {
                Some(Err(why)) => RunEnd::Unfit { why, message },
                _ => RunEnd::Completed(message),
            }
        }
        TurnOutcome::Failed(failure) if failure.is_budget => RunEnd::Budget(failure.message),
        TurnOutcome::Failed(failure) => RunEnd::TurnFailed(failure.message),
        TurnOutcome::Interrupted => RunEnd::Interrupted,
    }
}

/// Resolves at the deadline of an interrupted turn. Without one it never resolves.
async fn stop_deadline(stopping: &Option<(Instant, RunEnd)>) -> RunEnd {
    match stopping {
        Some((until, ended)) => {
            sleep_until(*until).await;
            ended.clone()
        }
        None => std::future::pending().await,
    }
}
