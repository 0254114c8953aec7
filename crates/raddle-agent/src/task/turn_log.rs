//! The log of turns: a span around the work of each turn, and one line at its end.

use raddle_core::{
    ErrorClass, Event, Failure, Thread, ThreadId, Timestamp, TurnEnd, TurnId, Usage,
};
use tracing::Span;

use crate::counters::failure_kind;

/// Data on the turns of a thread for the log.
#[derive(Default)]
pub(super) struct TurnLog {
    /// Callers that may have started a turn: its id, and the caller's span. Empty between two
    /// batches of actions: the reply to a caller and the start of its turn are in the same batch.
    starters: Vec<(TurnId, Span)>,
    running: Option<RunningTurn>,
}

/// Figures of the running turn, for the log line at its end.
struct RunningTurn {
    id: TurnId,
    span: Span,
    started_at: Option<Timestamp>,
    /// Model of the newest call.
    model: Option<String>,
    /// Tokens of the calls that ended in this process.
    usage: Usage,
    nano_usd: u64,
    priced_calls: u32,
    unpriced_calls: u32,
}

impl TurnLog {
    /// Continues a turn that another owner began.
    pub(super) fn adopt(&mut self, thread: &Thread) {
        let turn = thread.turn();
        let started_at = turn.map(|it| it.started_at);
        self.running = turn.map(|it| RunningTurn::new(it.id.clone(), started_at, &Span::current()));
    }

    /// Notes the caller whose command starts this turn, unless its input joins another one.
    pub(super) fn add_starter(&mut self, turn: TurnId, caller: &Span) {
        if !caller.is_disabled() {
            self.starters.push((turn, caller.clone()));
        }
    }

    /// Forgets the callers of a batch, also those whose command started no turn.
    pub(super) fn clear_starters(&mut self) {
        self.starters.clear();
    }

    /// Returns the span of the running turn, or the current span if no turn runs.
    pub(super) fn span(&self) -> Span {
        match &self.running {
            Some(turn) => turn.span.clone(),
            None => Span::current(),
        }
    }

    /// Follows an event that is stored. The end of a turn is logged once, by the process that
    /// stored it.
    pub(super) fn follow(&mut self, thread: &Thread, event: &Event, at: Timestamp) {
        match event {
            Event::TurnStarted(it) => {
                let starter = self.starters.iter().find(|(turn, _)| *turn == it.turn);
                let parent = starter.map_or_else(Span::current, |(_, caller)| caller.clone());
                self.running = Some(RunningTurn::new(it.turn.clone(), Some(at), &parent));
            }
            Event::ModelCalled(it) => self.turn(thread, &it.turn).model = it.model.clone(),
            Event::ModelEnded(it) => {
                if let Some(usage) = &it.usage {
                    self.turn(thread, &it.turn).count(usage, it.nano_usd);
                }
            }
            Event::ModelUsed(it) => self.turn(thread, &it.turn).count(&it.usage, it.nano_usd),
            Event::TurnEnded(it) => {
                let turn = self.turn(thread, &it.turn);
                match &it.end {
                    TurnEnd::Failed(failure) => turn.log_failure(thread.id(), failure, at),
                    TurnEnd::Completed {} => turn.log_end("completed", at),
                    TurnEnd::Interrupted(_) => turn.log_end("interrupted", at),
                }
                self.running = None;
            }
            _ => {}
        }
    }

    /// Returns the running turn. The start of a turn that another owner began is read from the
    /// thread.
    fn turn(&mut self, thread: &Thread, id: &TurnId) -> &mut RunningTurn {
        let running = self.running.take().filter(|it| it.id == *id);
        let adopted = || RunningTurn::new(id.clone(), started_at(thread, id), &Span::current());
        self.running.insert(running.unwrap_or_else(adopted))
    }
}

impl RunningTurn {
    fn new(id: TurnId, started_at: Option<Timestamp>, parent: &Span) -> Self {
        Self {
            span: tracing::info_span!(target: crate::SPANS, parent: parent, "turn", %id),
            id,
            started_at,
            model: None,
            usage: Usage::default(),
            nano_usd: 0,
            priced_calls: 0,
            unpriced_calls: 0,
        }
    }

    /// Adds the usage of a model call.
    fn count(&mut self, usage: &Usage, nano_usd: Option<u64>) {
        self.usage = self.usage.plus(usage);
        match nano_usd {
            Some(nano_usd) => {
                self.nano_usd = self.nano_usd.saturating_add(nano_usd);
                self.priced_calls += 1;
            }
            None => self.unpriced_calls += 1,
        }
    }

    /// Returns the cost, if the price of every call is known.
    fn cost_usd(&self) -> Option<f64> {
        let is_known = self.priced_calls > 0 && self.unpriced_calls == 0;
        is_known.then_some(self.nano_usd as f64 / 1e9)
    }

    /// Logs a failure. The line names the thread and the turn itself, because at `warn` there are
    /// no spans. The message has no secrets: `raddle-model` redacts those that a vendor repeats.
    fn log_failure(&self, thread: Option<ThreadId>, failure: &Failure, at: Timestamp) {
        self.span.in_scope(|| {
            tracing::warn!(
                thread = thread.map(tracing::field::display),
                turn = %self.id,
                outcome = "failed",
                failure = failure_kind(&failure.kind),
                class = class_name(failure.kind.class()),
                error = failure.message.as_str(),
                duration_ms = self.started_at.map(|it| at.since(it)),
                model = self.model.as_deref(),
                input_tokens = self.usage.input,
                cached_tokens = self.usage.cached,
                output_tokens = self.usage.output,
                cost_usd = self.cost_usd(),
                "turn ended"
            );
        });
    }

    fn log_end(&self, outcome: &'static str, at: Timestamp) {
        self.span.in_scope(|| {
            tracing::info!(
                outcome,
                duration_ms = self.started_at.map(|it| at.since(it)),
                model = self.model.as_deref(),
                input_tokens = self.usage.input,
                cached_tokens = self.usage.cached,
                output_tokens = self.usage.output,
                cost_usd = self.cost_usd(),
                "turn ended"
            );
        });
    }
}

/// Names a class of failures, in the style of the kinds.
fn class_name(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Transient => "transient",
        ErrorClass::RateLimited => "rate_limited",
        ErrorClass::Quota => "quota",
        ErrorClass::Auth => "auth",
        ErrorClass::Policy => "policy",
        ErrorClass::ContextOverflow => "context_overflow",
        ErrorClass::BadRequest => "bad_request",
        ErrorClass::Unavailable => "unavailable",
        ErrorClass::Internal => "internal",
    }
}

/// Returns the time at which a turn began.
fn started_at(thread: &Thread, id: &TurnId) -> Option<Timestamp> {
    let running = thread.turn().filter(|it| it.id == *id);
    let last = thread.last_turn().filter(|it| it.id == *id);
    let running = running.map(|it| it.started_at);
    running.or_else(|| last.map(|it| it.started_at))
}
