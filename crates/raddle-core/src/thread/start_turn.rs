//! Input: it begins a turn, or joins the running one.

use super::{Decision, OpenTurn, Thread, item_text, manage};
use crate::{
    ChangeSettings, CommandOutcome, Event, InputAccepted, InputMessage, ItemBody, ItemCompleted,
    ItemStarted, ItemStatus, NewHookPrompt, RecordBody, Refusal, StartTurn, Steer, Timestamp,
    TurnId, TurnKind, TurnStarted,
};

pub(super) fn decide(
    thread: &Thread,
    start: StartTurn,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let change = ChangeSettings {
        change: *start.change,
        principal: start.principal.clone(),
    };
    let mut bodies = manage::change_settings(thread, change).bodies;
    if let Some(turn) = &thread.turn {
        if start.kind != TurnKind::Work {
            return Err(Refusal::TurnRunning);
        }
        takes_input(turn)?;
        let message = start.message.ok_or(Refusal::EmptyInput)?;
        bodies.extend(thread.joining_briefs(start.briefs));
        bodies.extend(input(&turn.id, message, start.principal, now));
        return Ok(Decision {
            bodies,
            outcome: CommandOutcome::Joined {
                turn: turn.id.clone(),
            },
        });
    }
    bodies.push(
        Event::TurnStarted(TurnStarted {
            turn: start.turn.clone(),
            kind: start.kind,
            principal: start.principal.clone(),
            root: start.root,
            output_schema: start.output_schema,
            reviewed: Vec::new(),
        })
        .into(),
    );
    bodies.extend(thread.changed_briefs(start.briefs));
    bodies.extend(
        start
            .message
            .map(|message| input(&start.turn, message, start.principal, now))
            .into_iter()
            .flatten(),
    );
    Ok(Decision {
        bodies,
        outcome: CommandOutcome::Started { turn: start.turn },
    })
}

/// Adds input to the running turn. The next model call includes it; nothing is cut short.
pub(super) fn steer(thread: &Thread, steer: Steer, now: Timestamp) -> Result<Decision, Refusal> {
    let turn = thread.turn.as_ref().ok_or(Refusal::NoTurn)?;
    if turn.id != steer.expected {
        return Err(Refusal::OtherTurn {
            expected: steer.expected,
            found: turn.id.clone(),
        });
    }
    takes_input(turn)?;
    if steer.message.input.is_empty() {
        return Err(Refusal::EmptyInput);
    }
    let mut bodies: Vec<RecordBody> = thread.joining_briefs(steer.briefs).collect();
    bodies.extend(input(&turn.id, steer.message, steer.principal, now));
    Ok(Decision {
        bodies,
        outcome: CommandOutcome::Joined {
            turn: turn.id.clone(),
        },
    })
}

fn takes_input(turn: &OpenTurn) -> Result<(), Refusal> {
    match turn.kind {
        TurnKind::Work | TurnKind::Shell if turn.stopping.is_some() => Err(Refusal::TurnStopping),
        TurnKind::Work | TurnKind::Shell => Ok(()),
        kind @ (TurnKind::Review | TurnKind::Compaction) => Err(Refusal::NotSteerable { kind }),
    }
}

/// Accepts a message, and then the text that hooks add to it.
fn input(
    turn: &TurnId,
    mut message: InputMessage,
    principal: Option<String>,
    now: Timestamp,
) -> Vec<RecordBody> {
    let hook_prompt = message.hook_prompt.take();
    let accepted = Event::InputAccepted(InputAccepted {
        turn: turn.clone(),
        item: message.into_item(now),
        principal,
    });
    let mut bodies = vec![accepted.into()];
    if let Some(NewHookPrompt { item, prompt }) = hook_prompt {
        let mut item = item_text::new_item(item, ItemBody::HookPrompt(prompt), now);
        bodies.push(
            Event::ItemStarted(ItemStarted {
                turn: turn.clone(),
                item: item.clone(),
                gate: None,
                ruling: None,
            })
            .into(),
        );
        item.status = ItemStatus::Completed;
        item.completed_at = Some(now);
        let turn = turn.clone();
        bodies.push(Event::ItemCompleted(ItemCompleted { turn, item }).into());
    }
    bodies
}
