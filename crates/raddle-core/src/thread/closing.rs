//! Closing of everything that is open, in the order that keeps every promise: requests, then items,
//! then the turn.

use crate::{
    Cause, Event, Failure, InterruptAccepted, Item, ItemBody, ItemCompleted, ItemId, ItemStatus,
    ModelEnd, ModelEnded, OpenItem, OpenTurn, Output, RecordBody, Recovery, RequestResolved,
    Resolution, Thread, Timestamp, TurnEnd, TurnEnded,
};

/// Number of dead owners at which a turn is not continued.
const OWNERS_LOST_MAX: u32 = 3;

/// Output for the model of a call that never ran.
const NOT_RUN: &str = "This call was not run, because the turn was stopped first.";

/// Output for the model of a call whose answer broke off.
const BROKEN_OFF: &str = "This call was not run, because the answer that made it broke off.";

/// Output for the model of a call with an unknown outcome.
const UNKNOWN: &str = "This call was started, but the server ended before its outcome was known. \
                       It may have taken effect in part, in full or not at all; check before you repeat it.";

/// Output for the model of a call that was asking the user something.
const ASKING: &str = "This call was asking the user a question when the server ended, so it was lost and no answer \
                      can reach it. It may have taken effect in part; check before you repeat it. A repeated call \
                      asks the user again.";

/// Output for the model of a call that a client got and did not answer.
const UNANSWERED: &str = "The client was asked to run this, and the turn was stopped before it answered. \
                          It may have taken effect in part, in full or not at all; check before you repeat it.";

/// Returns the event that ends an item.
pub(super) fn completed(turn: &OpenTurn, item: Item) -> RecordBody {
    Event::ItemCompleted(ItemCompleted {
        turn: turn.id.clone(),
        item,
    })
    .into()
}

/// Ends a tool's item with output for the model.
pub(super) fn tool_ended(
    turn: &OpenTurn,
    open: &OpenItem,
    status: ItemStatus,
    output: Output,
    now: Timestamp,
) -> RecordBody {
    let mut item = open.last_form(status, now);
    // Clients show the error of such an item, and not its output.
    if let (ItemStatus::Unknown, ItemBody::Mcp(call)) = (status, &mut item.body) {
        call.error.get_or_insert_with(|| output.text.clone());
    }
    item.output = Some(output);
    completed(turn, item)
}

/// Ends a tool's item that does not run here, because its turn ends.
fn stopped(thread: &Thread, turn: &OpenTurn, open: &OpenItem, now: Timestamp) -> RecordBody {
    if thread.is_with_client(&open.item.id) {
        let unknown = Output::failure(UNANSWERED);
        return tool_ended(turn, open, ItemStatus::Unknown, unknown, now);
    }
    let not_run = Output::failure(NOT_RUN);
    tool_ended(turn, open, ItemStatus::NotRun, not_run, now)
}

/// Withdraws the requests about an item.
pub(super) fn withdraw(thread: &Thread, item: &ItemId, bodies: &mut Vec<RecordBody>) {
    let requests = thread
        .requests
        .iter()
        .filter(|(_, open)| open.item == *item);
    bodies.extend(requests.map(|(request, _)| {
        RecordBody::from(Event::RequestResolved(RequestResolved {
            request: *request,
            resolution: Resolution::Withdrawn {},
            grant: None,
        }))
    }));
}

/// Open items that end now, although no report of their end came.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemSelection {
    /// Items that the model or the user would have ended; running tools continue.
    AllButRunning,
    /// Running tools: no report of their end will come.
    Running,
    /// Items of a model call that broke off.
    OfCall(u32),
}

/// Ends open items, each after the requests about it.
pub(super) fn end_items(
    thread: &Thread,
    turn: &OpenTurn,
    selection: ItemSelection,
    except: Option<&ItemId>,
    now: Timestamp,
) -> Vec<RecordBody> {
    let mut bodies = Vec::new();
    for open in &turn.items {
        let chosen = match selection {
            ItemSelection::AllButRunning => !open.started,
            ItemSelection::Running => open.started,
            // No tool of a call starts while it runs, and user commands do not belong to it.
            ItemSelection::OfCall(call) => open.call == call && !open.item.is_users_command(),
        };
        if !chosen || except == Some(&open.item.id) {
            continue;
        }
        withdraw(thread, &open.item.id, &mut bodies);
        bodies.push(match (open.is_tool(), selection) {
            (false, ItemSelection::Running) => {
                completed(turn, open.last_form(ItemStatus::Unknown, now))
            }
            (false, _) => completed(turn, open.last_form(ItemStatus::Partial, now)),
            (true, ItemSelection::Running) => {
                let is_asking = thread.requests.values().any(|it| it.item == open.item.id);
                let unknown = Output::failure(if is_asking { ASKING } else { UNKNOWN });
                tool_ended(turn, open, ItemStatus::Unknown, unknown, now)
            }
            (true, ItemSelection::AllButRunning) => stopped(thread, turn, open, now),
            (true, ItemSelection::OfCall(_)) => {
                let broken_off = Output::failure(BROKEN_OFF);
                tool_ended(turn, open, ItemStatus::NotRun, broken_off, now)
            }
        });
    }
    bodies
}

/// Ends the running model call.
pub(super) fn model_ended(turn: &OpenTurn, end: ModelEnd) -> Option<RecordBody> {
    let model = turn.model?;
    Some(
        Event::ModelEnded(ModelEnded {
            turn: turn.id.clone(),
            call: model.call,
            end,
            usage: None,
            estimated: false,
            nano_usd: None,
        })
        .into(),
    )
}

/// Begins to stop the turn: items that do not run end now, running tools are waited for.
pub(super) fn stop(
    thread: &Thread,
    turn: &OpenTurn,
    cause: Cause,
    except: Option<&ItemId>,
    now: Timestamp,
) -> Vec<RecordBody> {
    let mut bodies = vec![RecordBody::from(Event::InterruptAccepted(
        InterruptAccepted {
            turn: turn.id.clone(),
            cause,
        },
    ))];
    bodies.extend(model_ended(turn, ModelEnd::Cancelled {}));
    bodies.extend(end_items(
        thread,
        turn,
        ItemSelection::AllButRunning,
        except,
        now,
    ));
    bodies
}

/// Ends everything at once, and the turn with it.
pub(super) fn end_all(
    thread: &Thread,
    turn: &OpenTurn,
    end: TurnEnd,
    now: Timestamp,
) -> Vec<RecordBody> {
    let mut bodies = Vec::new();
    bodies.extend(model_ended(turn, ModelEnd::Cancelled {}));
    bodies.extend(end_items(
        thread,
        turn,
        ItemSelection::AllButRunning,
        None,
        now,
    ));
    bodies.extend(end_items(thread, turn, ItemSelection::Running, None, now));
    bodies.extend(turn_ended(thread, turn, end, now));
    bodies
}

/// Ends the turn, after its review if there is one.
pub(super) fn turn_ended(
    thread: &Thread,
    turn: &OpenTurn,
    end: TurnEnd,
    now: Timestamp,
) -> Vec<RecordBody> {
    let mut bodies: Vec<RecordBody> = super::ask_trust::withdrawn(thread).collect();
    bodies.extend(super::review::exit_review(turn, now));
    bodies.push(
        Event::TurnEnded(TurnEnded {
            turn: turn.id.clone(),
            end,
        })
        .into(),
    );
    bodies
}

/// Decides the recovery of a turn whose owner died, from the state it left.
pub(super) fn recover(
    thread: &Thread,
    turn: &OpenTurn,
    lost: u32,
    default_recovery: Recovery,
    now: Timestamp,
) -> Vec<RecordBody> {
    let mut bodies = Vec::new();
    bodies.extend(model_ended(turn, ModelEnd::OwnerLost {}));
    let call = turn.model.map(|model| model.call);
    if let Some(call) = call {
        bodies.extend(end_items(
            thread,
            turn,
            ItemSelection::OfCall(call),
            None,
            now,
        ));
    }
    if !crate::bugs::planted(crate::bugs::Bug::ToolRunAgain) {
        bodies.extend(end_items(thread, turn, ItemSelection::Running, None, now));
    }
    // Items that are still open wait for an answer, or were ready and never started.
    let waiting = |open: &&OpenItem| !open.started && Some(open.call) != call;
    let rest = |bodies: &mut Vec<RecordBody>| {
        for open in turn.items.iter().filter(waiting) {
            withdraw(thread, &open.item.id, bodies);
            bodies.push(stopped(thread, turn, open, now));
        }
    };
    if lost >= OWNERS_LOST_MAX {
        rest(&mut bodies);
        let message = format!("{lost} owners of this turn died; it is not continued");
        let failure = Failure::new(crate::FailureKind::RecoveryLimit, message);
        bodies.extend(turn_ended(thread, turn, TurnEnd::Failed(failure), now));
    } else if turn.stopping.is_some() {
        rest(&mut bodies);
    } else if thread.settings.recovery.unwrap_or(default_recovery) == Recovery::Interrupt {
        bodies.push(
            Event::InterruptAccepted(InterruptAccepted {
                turn: turn.id.clone(),
                cause: Cause::OwnerLost {},
            })
            .into(),
        );
        rest(&mut bodies);
    } else if crate::bugs::planted(crate::bugs::Bug::ApprovalLost) {
        for request in thread.requests.keys() {
            bodies.push(
                Event::RequestResolved(RequestResolved {
                    request: *request,
                    resolution: Resolution::Withdrawn {},
                    grant: None,
                })
                .into(),
            );
        }
    }
    bodies
}
