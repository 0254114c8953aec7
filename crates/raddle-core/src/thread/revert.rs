//! Revert: turns from a given one on no longer count.

use super::state::cuts_max;
use super::{Decision, Thread};
use crate::{Event, Refusal, Revert, Reverted, Seq, Span};

pub(super) fn decide(thread: &Thread, it: Revert) -> Result<Decision, Refusal> {
    if thread.turn.is_some() {
        return Err(Refusal::TurnRunning);
    }
    let is_reverted = thread.cuts.iter().any(|cut| cut.holds(it.at));
    if is_reverted || it.at > thread.head || it.point.turns >= thread.turns {
        return Err(Refusal::NoSuchTurn);
    }
    let lineage = cut(&it.point.lineage, it.at, thread.head.next());
    if it.at < thread.cuts_from || lineage.len() > cuts_max() {
        return Err(Refusal::TooManyReverts);
    }
    let reverted = Reverted {
        turn: it.turn,
        at: it.at,
        lineage,
        turns: it.point.turns,
        context_tokens: it.point.context_tokens,
        principal: it.principal,
    };
    Ok(vec![Event::Reverted(reverted).into()].into())
}

/// Returns the lineage before a point, extended by what follows from now on.
pub(crate) fn cut(lineage: &[Span], at: Seq, resumed: Seq) -> Vec<Span> {
    let before = lineage.iter().filter(|span| span.from < at);
    let mut lineage: Vec<Span> = before
        .map(|span| Span {
            from: span.from,
            until: Some(span.until.map_or(at, |until| until.min(at))),
        })
        .collect();
    lineage.push(Span {
        from: resumed,
        until: None,
    });
    lineage
}
