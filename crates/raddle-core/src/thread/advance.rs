//! Steps of a turn that follow without a command, once nothing blocks them.

use super::closing::{self, ItemSelection};
use super::{OpenItem, OpenTurn, Thread, answer_request};
use crate::{
    Ask, Cause, Event, Failure, Gate, ItemSaved, ModelCalled, PartText, Purpose, RecordBody,
    RequestAnswer, RequestOpened, Resolution, Timestamp, ToolStarted, TurnEnd, TurnKind,
};

/// Principal of answers that the policy gives when a request times out.
pub const POLICY: &str = "policy";

/// Limit: tool calls of one model response that run at a time; beyond it, the others wait.
const RUNNING_MAX: usize = 8;

/// Timeout for a tool to end once it must stop.
const STOP_MS_MAX: i64 = 10_000;

/// Unsaved text of an open item above which the item is saved in full, once that is at least half
/// of its text. Its deltas can then be deleted. Storing an item then costs only a small multiple of
/// its final size.
fn unsaved_bytes_max() -> u64 {
    crate::bugs::bound(256 << 10, 300)
}

impl Thread {
    /// Returns the next step that follows without a command, or nothing. Call it again after
    /// applying the step.
    pub fn advance(&self, now: Timestamp) -> Vec<RecordBody> {
        let Some(turn) = &self.turn else {
            return Vec::new();
        };
        if let Some((number, open)) = self.requests.iter().find(|(_, open)| {
            let until = open.expires_at;
            until.is_some_and(|until| now.is_over(open.opened_at, until))
        }) {
            let resolution = match open.approve_on_timeout {
                true => Resolution::Answered {
                    by: POLICY.to_owned(),
                    answer: Box::new(RequestAnswer::Accept {}),
                },
                false => Resolution::Expired {},
            };
            return answer_request::settle(self, *number, open, resolution, now);
        }
        if let Some(open) = turn
            .items
            .iter()
            .find(|open| open.unsaved_bytes > unsaved_bytes_max().max(open.bytes() / 2))
        {
            let texts = open.texts.iter().map(|(part, text)| PartText {
                part: *part,
                text: text.clone(),
            });
            let texts = texts.collect();
            let item = open.item.id.clone();
            return vec![Event::ItemSaved(ItemSaved { item, texts }).into()];
        }
        if let Some(stopping) = &turn.stopping {
            return self.stop_further(turn, stopping.at, now);
        }
        if let Some(warning) = self.budget_warning(now) {
            return vec![warning];
        }
        if let Some(spending) = self.exhausted_time(now) {
            return closing::stop(self, turn, Cause::BudgetSpent(spending), None, now);
        }
        // A user command waits for nothing.
        let users = turn
            .items
            .iter()
            .find(|open| open.item.is_users_command() && open.ready && !open.started);
        if let Some(open) = users {
            return vec![started(turn, open)];
        }
        if turn.model.is_some() {
            return Vec::new();
        }
        if let Some(failure) = &turn.failed {
            return self.fail(turn, failure.clone(), now);
        }
        if let Some(spending) = self.exhausted_for_tool(turn, now) {
            return self.fail(turn, Failure::budget_exhausted(spending), now);
        }
        if let Some(open) = self.next_for_client(turn) {
            let opened = RequestOpened {
                request: self.next_request,
                turn: turn.id.clone(),
                item: open.item.id.clone(),
                ask: Ask::ClientTool {},
                expires_at: None,
                digest: None,
                files: Vec::new(),
                approve_on_timeout: false,
            };
            return vec![Event::RequestOpened(opened).into()];
        }
        let starting = next_tool(turn);
        if let Some(open) = starting {
            return vec![started(turn, open)];
        }
        if turn.items.iter().any(|open| !open.item.is_users_command()) {
            return Vec::new();
        }
        self.ask_or_end(turn, now)
    }

    /// Time at which to decide again although nothing comes in.
    pub fn wake_at(&self) -> Option<Timestamp> {
        let turn = self.turn.as_ref();
        // Without a call to make, a turn waits only for user commands.
        let retry = turn.filter(|turn| turn.items.is_empty() || turn.needs_call());
        let retry = retry.and_then(|turn| turn.retry_at);
        let stop = turn
            .and_then(|turn| turn.stopping.as_ref())
            .map(|stopping| stopping.at.plus_ms(STOP_MS_MAX));
        let expiry = self.requests.values().filter_map(|open| open.expires_at);
        let waits = retry.into_iter().chain(stop).chain(expiry);
        waits.chain(self.time_limit_at()).min()
    }

    /// Returns the next tool for a client that no request was sent for.
    fn next_for_client<'a>(&self, turn: &'a OpenTurn) -> Option<&'a OpenItem> {
        turn.items.iter().find(|open| {
            let may = open.ready || open.gate == Some(Gate::Answer);
            open.is_client_tool() && may && !self.is_with_client(&open.item.id)
        })
    }

    /// Ends a turn that cannot continue, once nothing of it runs.
    fn fail(&self, turn: &OpenTurn, failure: Failure, now: Timestamp) -> Vec<RecordBody> {
        if turn.items.iter().any(|open| open.started) {
            return Vec::new();
        }
        let mut bodies = closing::end_items(self, turn, ItemSelection::AllButRunning, None, now);
        let end = TurnEnd::Failed(failure);
        bodies.extend(closing::turn_ended(self, turn, end, now));
        bodies
    }

    /// Ends a stopping turn once nothing of it runs, or after a timeout.
    fn stop_further(&self, turn: &OpenTurn, since: Timestamp, now: Timestamp) -> Vec<RecordBody> {
        let Some(stopping) = &turn.stopping else {
            return Vec::new();
        };
        if turn.items.is_empty() {
            let end = match &stopping.cause {
                Cause::BudgetSpent(spending) => {
                    TurnEnd::Failed(Failure::budget_exhausted(*spending))
                }
                cause => TurnEnd::Interrupted(cause.clone()),
            };
            return closing::turn_ended(self, turn, end, now);
        }
        if now.is_over(since, since.plus_ms(STOP_MS_MAX)) {
            return closing::end_items(self, turn, ItemSelection::Running, None, now);
        }
        Vec::new()
    }

    /// Calls the model, or ends the turn: nothing is open but user commands.
    fn ask_or_end(&self, turn: &OpenTurn, now: Timestamp) -> Vec<RecordBody> {
        let retry = turn.retry_at;
        if retry.is_some_and(|at| !now.is_over(turn.broke_at, at)) {
            return Vec::new();
        }
        let is_begun = turn.calls > 0 || turn.kind == TurnKind::Shell;
        if !turn.needs_call() && is_begun {
            if !turn.items.is_empty() {
                return Vec::new();
            }
            if crate::bugs::planted(crate::bugs::Bug::UnendedTurn) && turn.calls > 2 {
                return Vec::new();
            }
            return closing::turn_ended(self, turn, TurnEnd::Completed {}, now);
        }
        if let Some(spending) = self.exhausted_for_call(now) {
            return self.fail(turn, Failure::budget_exhausted(spending), now);
        }
        let full = self
            .settings
            .compact_above
            .is_some_and(|above| self.context_tokens > above);
        let purpose = if turn.needs_compaction() || full || turn.is_too_long() {
            Purpose::Compact
        } else {
            Purpose::Answer
        };
        let (model, provider) = match self.route() {
            Some(route) => (Some(route.model.clone()), Some(route.provider.clone())),
            None => (self.settings.model.clone(), self.settings.provider.clone()),
        };
        let called = ModelCalled {
            turn: turn.id.clone(),
            call: self.calls + 1,
            attempt: turn.attempts + 1,
            purpose,
            model,
            provider,
        };
        vec![Event::ModelCalled(called).into()]
    }
}

fn started(turn: &OpenTurn, open: &OpenItem) -> RecordBody {
    let started = ToolStarted {
        turn: turn.id.clone(),
        item: open.item.id.clone(),
    };
    Event::ToolStarted(started).into()
}

/// Returns the next tool that may start. A tool that must run alone waits for the others, and they
/// for it.
fn next_tool(turn: &OpenTurn) -> Option<&OpenItem> {
    let alone = |open: &OpenItem| open.item.call.as_ref().is_some_and(|call| call.alone);
    let tools = || turn.items.iter().filter(|open| open.is_tool());
    let running: Vec<&OpenItem> = tools().filter(|open| open.started).collect();
    let next = tools().find(|open| open.ready && !open.started && !open.is_client_tool())?;
    let has_capacity = running.len() < RUNNING_MAX && !running.iter().any(|open| alone(open));
    (running.is_empty() || has_capacity && !alone(next)).then_some(next)
}
