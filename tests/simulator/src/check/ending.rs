//! Turns and items: everything that begins ends, once and in order.

use raddle_core::{Event, ModelCalled, ModelEnd, Purpose, Record, RecordBody};

use super::{Check, Oracle, broken, text_of};

const I5: &str = "I5 ending";

/// I5: every turn ends exactly once, and every item of it before it.
pub fn i5_ending(oracle: &Oracle, record: &Record) -> Check {
    let event = match &record.body {
        RecordBody::Delta(delta) => {
            let open = oracle.items.get(&delta.item).is_some_and(|item| item.open);
            if !open {
                return broken(
                    I5,
                    format!("{} grows {}, which is not open", record.seq, delta.item),
                );
            }
            return grows_where_it_ends(oracle, record);
        }
        RecordBody::Event(event) => event,
    };
    let open = oracle
        .items
        .iter()
        .find(|(_, item)| item.open)
        .map(|(id, _)| id);
    // A command of the user's is not waited for.
    let mut items = oracle.items.values();
    let waits = items.any(|item| item.open && !item.users);
    let turn = oracle.open_turn.as_ref();
    match &**event {
        Event::TurnStarted(it) => match turn {
            Some(turn) => broken(I5, format!("{} begins inside {turn}", it.turn)),
            None if oracle.turns.iter().any(|(old, _)| *old == it.turn) => {
                broken(I5, format!("{} begins again", it.turn))
            }
            None => Ok(()),
        },
        Event::TurnEnded(it) if turn != Some(&it.turn) => {
            broken(I5, format!("{} ends and does not run", it.turn))
        }
        Event::TurnEnded(it) => match (open, oracle.requests.keys().next()) {
            (Some(open), _) => broken(I5, format!("{} ends before {open}", it.turn)),
            (_, Some(request)) => broken(I5, format!("{} ends before request {request}", it.turn)),
            (None, None) => Ok(()),
        },
        Event::ItemStarted(it) if oracle.items.contains_key(&it.item.id) => {
            broken(I5, format!("{} begins again", it.item.id))
        }
        Event::ItemStarted(it) if turn != Some(&it.turn) => {
            broken(I5, format!("{} begins outside its turn", it.item.id))
        }
        Event::ItemCompleted(it)
            if !oracle.items.get(&it.item.id).is_some_and(|item| item.open) =>
        {
            broken(I5, format!("{} ends and is not open", it.item.id))
        }
        Event::ItemCompleted(it) if it.item.call.is_some() && it.item.output.is_none() => broken(
            I5,
            format!("{} ends without output for the model", it.item.id),
        ),
        Event::ModelCalled(_) if waits => broken(
            I5,
            format!("{} calls the model while something is open", record.seq),
        ),
        Event::ModelCalled(it) => continues_as_it_ended(oracle, it),
        Event::InputAccepted(it) => match text_of(&it.item.body) {
            _ if turn != Some(&it.turn) => broken(I5, "input for a turn that does not run"),
            // Every message of the clients is unique.
            Some(text) if !text.is_empty() && oracle.inputs.contains(&text) => broken(
                "I3 no silent run",
                format!("the input {text:?} is taken twice"),
            ),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// A rerouted call goes to the named model, and a history that is too long is summarised first.
fn continues_as_it_ended(oracle: &Oracle, called: &ModelCalled) -> Check {
    match &oracle.ended {
        Some(ModelEnd::Rerouted { to, .. })
            if called.provider.as_ref() != Some(&to.provider)
                || called.model.as_ref() != Some(&to.model) =>
        {
            broken(I5, format!("{called:?} is not the call of {to}"))
        }
        Some(ModelEnd::Overflowed { .. }) if called.purpose != Purpose::Compact => {
            broken(I5, format!("{called:?} does not compact what is too long"))
        }
        _ => Ok(()),
    }
}

/// Text is stored where the text before it ends.
fn grows_where_it_ends(oracle: &Oracle, record: &Record) -> Check {
    let RecordBody::Delta(delta) = &record.body else {
        return Ok(());
    };
    let items = oracle.fold.turn().map(|turn| turn.items.iter());
    let open = items.and_then(|mut items| items.find(|open| open.item.id == delta.item));
    let length = open.map(|open| open.texts.get(&delta.part).map_or(0, String::len) as u64);
    if length != Some(delta.offset) {
        return broken(
            I5,
            format!(
                "{} says {} and the text is {length:?} long",
                record.seq, delta.offset
            ),
        );
    }
    Ok(())
}

/// I5, after all faults have ended: no turn runs, and none is left to begin by itself.
pub fn i5_all_ended(oracle: &Oracle) -> Check {
    match &oracle.open_turn {
        None if !oracle.fold.pending().is_empty() => {
            broken(I5, "a turn that was to begin by itself never did")
        }
        Some(turn) => broken(
            I5,
            format!("{turn} has not ended, long after all is well again"),
        ),
        None => Ok(()),
    }
}

/// Whether no turn runs, and none is about to.
pub fn is_idle(oracle: &Oracle) -> bool {
    oracle.open_turn.is_none() && oracle.fold.pending().is_empty()
}
