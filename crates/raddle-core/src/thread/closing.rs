//! Closing of everything that is open, in the order that keeps every promise: requests, then items,
//! then the turn.

use crate::{
    Ask, Cause, Event, Failure, InterruptAccepted, Item, ItemBody, ItemCompleted, ItemId,
    ItemStatus, ModelEnd, ModelEnded, OpenItem, OpenTurn, Output, RecordBody, Recovery,
    RequestNumber, RequestResolved, Resolution, Thread, Timestamp, TurnEnd, TurnEnded,
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

/// Output for the model of a call that was asking the user for a permission of its plugin.
const ASKING_PERMISSION: &str = "This call was lost when the server ended. It was asking the user for a permission of its \
                                 plugin, and the question is still open. The call may have taken effect in part; check \
                                 before you repeat it. A repeated call waits for the user's answer.";

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
    withdraw_if(thread, item, bodies, |_| true);
}

/// Withdraws those requests about an item that fulfil a condition.
fn withdraw_if(
    thread: &Thread,
    item: &ItemId,
    bodies: &mut Vec<RecordBody>,
    condition: impl Fn(&Ask) -> bool,
) {
    let requests = thread.requests.iter();
    let requests = requests.filter(|(_, open)| open.item == *item && condition(&open.ask));
    bodies.extend(requests.map(|(request, _)| withdrawn(*request)));
}

/// Returns the event that withdraws a request.
pub(super) fn withdrawn(request: RequestNumber) -> RecordBody {
    Event::RequestResolved(RequestResolved {
        request,
        resolution: Resolution::Withdrawn {},
        grant: None,
    })
    .into()
}

/// Open items that end now, although no report of their end came.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemSelection {
    /// Items that the model or the user would have ended; running tools continue.
    AllButRunning,
    /// Running tools: no report of their end will come.
    Running,
    /// Running tools of an owner that died, in a turn that continues. What a plugin asked the user
    /// stays open, for the call that repeats the question.
    Lost,
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
            ItemSelection::Running | ItemSelection::Lost => open.started,
            // No tool of a call starts while it runs, and user commands do not belong to it.
            ItemSelection::OfCall(call) => open.call == call && !open.item.is_users_command(),
        };
        if !chosen || except == Some(&open.item.id) {
            continue;
        }
        let keeps_questions = selection == ItemSelection::Lost;
        withdraw_if(thread, &open.item.id, &mut bodies, |ask| {
            !keeps_questions || ask.plugin_permission().is_none()
        });
        bodies.push(match (open.is_tool(), selection) {
            (false, ItemSelection::Running | ItemSelection::Lost) => {
                completed(turn, open.last_form(ItemStatus::Unknown, now))
            }
            (false, _) => completed(turn, open.last_form(ItemStatus::Partial, now)),
            (true, ItemSelection::Running | ItemSelection::Lost) => {
                let mut asked = thread.requests.values();
                let asked = asked.find(|it| it.item == open.item.id).map(|it| &it.ask);
                let text = match asked.map(Ask::plugin_permission) {
                    Some(Some(_)) if keeps_questions => ASKING_PERMISSION,
                    Some(_) => ASKING,
                    None => UNKNOWN,
                };
                tool_ended(turn, open, ItemStatus::Unknown, Output::failure(text), now)
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
    // Those about open items are withdrawn with their items.
    let unowned = thread.requests.iter();
    let unowned = unowned.filter(|(_, open)| thread.open_item(&open.item).is_none());
    let mut bodies: Vec<RecordBody> = unowned.map(|(request, _)| withdrawn(*request)).collect();
    bodies.extend(super::review::exit_review(thread, turn, now));
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
    let recovery = thread.settings.recovery.unwrap_or(default_recovery);
    let is_given_up = lost >= OWNERS_LOST_MAX;
    let is_continued = !is_given_up && turn.stopping.is_none() && recovery != Recovery::Interrupt;
    if !crate::bugs::planted(crate::bugs::Bug::ToolRunAgain) {
        let selection = match is_continued {
            true => ItemSelection::Lost,
            false => ItemSelection::Running,
        };
        bodies.extend(end_items(thread, turn, selection, None, now));
    }
    // Items that are still open wait for an answer, or were ready and never started.
    let waiting = |open: &&OpenItem| !open.started && Some(open.call) != call;
    let rest = |bodies: &mut Vec<RecordBody>| {
        for open in turn.items.iter().filter(waiting) {
            withdraw(thread, &open.item.id, bodies);
            bodies.push(stopped(thread, turn, open, now));
        }
    };
    if is_given_up {
        rest(&mut bodies);
        let message = format!("{lost} owners of this turn died; it is not continued");
        let failure = Failure::new(crate::FailureKind::RecoveryLimit, message);
        bodies.extend(turn_ended(thread, turn, TurnEnd::Failed(failure), now));
    } else if turn.stopping.is_some() {
        rest(&mut bodies);
    } else if recovery == Recovery::Interrupt {
        bodies.push(
            Event::InterruptAccepted(InterruptAccepted {
                turn: turn.id.clone(),
                cause: Cause::OwnerLost {},
            })
            .into(),
        );
        rest(&mut bodies);
    } else if crate::bugs::planted(crate::bugs::Bug::ApprovalLost) {
        bodies.extend(thread.requests.keys().map(|it| withdrawn(*it)));
    }
    bodies
}
