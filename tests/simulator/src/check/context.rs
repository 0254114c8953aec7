//! Checks of the model's context.

use std::collections::BTreeMap;
use std::rc::Rc;

use raddle_core::{
    Context, ContextEntry, Event, Input, Purpose, Record, RecordBody, SharedEntry, Thread,
};

use super::{Check, Oracle, broken};
use crate::store::LogRow;

const CONTEXT: &str = "the context is well-formed";

/// Wherever a turn was cut off, the model's context is well-formed and contains all input.
pub fn well_formed(oracle: &Oracle, rows: &[Rc<LogRow>]) -> Check {
    let called = rows.iter().find_map(|row| match &row.record.body {
        RecordBody::Event(event) => match &**event {
            Event::ModelCalled(it) => Some(it.clone()),
            _ => None,
        },
        RecordBody::Delta(_) => None,
    });
    let has_tool_call = rows.iter().any(|row| match &row.record.body {
        RecordBody::Event(event) => {
            matches!(&**event, Event::ItemStarted(it) if it.item.call.is_some())
        }
        RecordBody::Delta(_) => false,
    });
    if called.is_none() && !has_tool_call {
        return Ok(());
    }
    let entries = Context::of(in_lineage(&oracle.fold, oracle)).entries();
    calls_have_outputs(&entries)?;
    environment_is_known(oracle, &entries)?;
    match called {
        Some(called) if called.purpose == Purpose::Answer => all_input_is_read(oracle, &entries),
        _ => Ok(()),
    }
}

/// Returns the records that count.
fn in_lineage<'a>(thread: &'a Thread, oracle: &'a Oracle) -> impl Iterator<Item = &'a Record> {
    let counts = |record: &&Record| thread.lineage().iter().any(|span| span.holds(record.seq));
    oracle
        .stored_rows
        .values()
        .map(|row| &row.record)
        .filter(counts)
}

fn calls_have_outputs(entries: &[SharedEntry]) -> Check {
    let mut open: Vec<&str> = Vec::new();
    for entry in entries {
        match &**entry {
            ContextEntry::Call(call) => open.push(&call.id),
            ContextEntry::Output { call, .. } => match open.iter().position(|open| open == call) {
                Some(index) => {
                    open.remove(index);
                }
                None => return broken(CONTEXT, format!("an output without its call: {call}")),
            },
            ContextEntry::User(_)
            | ContextEntry::Developer(_)
            | ContextEntry::Assistant { .. }
            | ContextEntry::Note(_)
                if !open.is_empty() =>
            {
                return broken(CONTEXT, format!("{open:?} has no output before {entry:?}"));
            }
            _ => {}
        }
    }
    if !open.is_empty() {
        return broken(CONTEXT, format!("{open:?} has no output"));
    }
    if let Some(ContextEntry::Assistant { partial: true, .. }) = entries.last().map(|it| &**it) {
        return broken(CONTEXT, "it ends with a message that was cut off");
    }
    Ok(())
}

/// The newest notes on the environment, in the history that counts, are in the context.
fn environment_is_known(oracle: &Oracle, entries: &[SharedEntry]) -> Check {
    let mut last = BTreeMap::new();
    for record in in_lineage(&oracle.fold, oracle) {
        if let RecordBody::Event(event) = &record.body
            && let Event::Briefed(it) = &**event
        {
            last.insert(it.topic, &it.text);
        }
    }
    for text in last.values() {
        let is_read =
            |entry: &SharedEntry| matches!(&**entry, ContextEntry::Note(note) if note == *text);
        if !entries.iter().any(is_read) {
            return broken(CONTEXT, format!("{text:?} was told and is not read"));
        }
    }
    // Every turn but a compaction begins with such notes.
    let mut records = in_lineage(&oracle.fold, oracle);
    let has_input = records.any(|record| match &record.body {
        RecordBody::Event(event) => matches!(**event, Event::InputAccepted(_)),
        RecordBody::Delta(_) => false,
    });
    if last.is_empty() && has_input {
        return broken(CONTEXT, "no note on the environment is known");
    }
    Ok(())
}

/// The user's input is in the context, each once and in order: all that counts, and nothing else.
fn all_input_is_read(oracle: &Oracle, entries: &[SharedEntry]) -> Check {
    let read = entries.iter().filter_map(|entry| match &**entry {
        ContextEntry::User(inputs) => match inputs.first() {
            Some(Input::Text { text, .. }) => Some(text),
            _ => None,
        },
        _ => None,
    });
    if read.clone().ne(oracle.expected_inputs.iter()) {
        let read: Vec<_> = read.collect();
        return broken(
            CONTEXT,
            format!(
                "{read:?} is read, and {:?} was said",
                oracle.expected_inputs
            ),
        );
    }
    Ok(())
}
