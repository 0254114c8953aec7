//! Commands that the user runs: during the running turn, or in a separate turn. They need no
//! approval, and the next model call includes them.

use super::{Decision, Thread, item_text};
use crate::{
    CommandOutcome, CommandRun, CommandSource, Event, Gate, ItemBody, ItemStarted, Refusal,
    RunShell, Timestamp, TurnKind, TurnStarted,
};

pub(super) fn decide(thread: &Thread, it: RunShell, now: Timestamp) -> Result<Decision, Refusal> {
    let mut bodies = Vec::new();
    let (turn, outcome) = match &thread.turn {
        Some(turn) if turn.stopping.is_some() || turn.failed.is_some() => {
            return Err(Refusal::TurnStopping);
        }
        Some(turn) => {
            let turn = turn.id.clone();
            (turn.clone(), CommandOutcome::Joined { turn })
        }
        None => {
            let started = TurnStarted {
                turn: it.turn.clone(),
                kind: TurnKind::Shell,
                principal: it.principal,
                root: None,
                output_schema: None,
                reviewed: Vec::new(),
            };
            bodies.push(Event::TurnStarted(started).into());
            bodies.extend(thread.changed_briefs(it.briefs));
            (it.turn.clone(), CommandOutcome::Started { turn: it.turn })
        }
    };
    let command = CommandRun {
        source: CommandSource::User,
        ..it.command
    };
    let started = ItemStarted {
        turn,
        item: item_text::new_item(it.item, ItemBody::Command(command), now),
        gate: Some(Gate::Open),
        ruling: None,
    };
    bodies.push(Event::ItemStarted(started).into());
    Ok(Decision { bodies, outcome })
}
