//! Input: it begins a turn, or joins the one that runs.

use super::{Decision, OpenTurn, Thread};
use crate::{
    Body, Event, InputAccepted, Message, Outcome, Refusal, SettingsChanged, StartTurn, Steer,
    Timestamp, TurnId, TurnKind, TurnStarted,
};

pub(super) fn decide(
    thread: &Thread,
    start: StartTurn,
    now: Timestamp,
) -> Result<Decision, Refusal> {
    let mut bodies = Vec::new();
    let settings = start.settings.filter(|new| **new != thread.settings);
    if let Some(turn) = &thread.turn {
        if start.kind != TurnKind::Work {
            return Err(Refusal::TurnRunning);
        }
        takes_input(turn)?;
        let message = start.message.ok_or(Refusal::EmptyInput)?;
        bodies.extend(settings.map(settings_changed));
        bodies.push(input(&turn.id, message, now));
        return Ok(Decision {
            bodies,
            outcome: Outcome::Joined(turn.id.clone()),
        });
    }
    bodies.extend(settings.map(settings_changed));
    bodies.push(
        Event::TurnStarted(TurnStarted {
            turn: start.turn.clone(),
            kind: start.kind,
            principal: start.principal,
            root: start.root,
            output_schema: start.output_schema,
        })
        .into(),
    );
    bodies.extend(
        start
            .message
            .map(|message| input(&start.turn, message, now)),
    );
    Ok(Decision {
        bodies,
        outcome: Outcome::Started(start.turn),
    })
}

/// More input for the turn that runs. It is read at the next call of the model and cuts nothing short.
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
    Ok(Decision {
        bodies: vec![input(&turn.id, steer.message, now)],
        outcome: Outcome::Joined(turn.id.clone()),
    })
}

fn takes_input(turn: &OpenTurn) -> Result<(), Refusal> {
    match turn.kind {
        TurnKind::Work if turn.stopping.is_some() => Err(Refusal::TurnStopping),
        TurnKind::Work => Ok(()),
        kind @ (TurnKind::Review | TurnKind::Compaction) => Err(Refusal::NotSteerable { kind }),
    }
}

fn input(turn: &TurnId, message: Message, now: Timestamp) -> Body {
    Event::InputAccepted(InputAccepted {
        turn: turn.clone(),
        item: message.into_item(now),
    })
    .into()
}

fn settings_changed(settings: Box<crate::Settings>) -> Body {
    Event::SettingsChanged(SettingsChanged {
        settings: *settings,
    })
    .into()
}
