//! History from outside this thread. It is accepted at any time, read by the next model call, and
//! does not prolong a turn.

use std::collections::BTreeSet;

use super::Decision;
use crate::{Event, InjectItems, InjectedItem, ItemsInjected, Refusal};

pub(super) fn decide(it: InjectItems) -> Result<Decision, Refusal> {
    let InjectItems { items, principal } = it;
    if items.is_empty() {
        return Err(Refusal::EmptyInput);
    }
    check_paired(&items)?;
    let injected = ItemsInjected { items, principal };
    Ok(vec![Event::ItemsInjected(injected).into()].into())
}

/// Checks that calls and outputs are paired. A vendor rejects a call without its output and the
/// reverse, now and in every later call.
fn check_paired(items: &[InjectedItem]) -> Result<(), Refusal> {
    let mut open: BTreeSet<&String> = BTreeSet::new();
    for item in items {
        match item {
            InjectedItem::Call(call) if !open.insert(&call.id) => return unpaired(&call.id),
            InjectedItem::Output { call, .. } if !open.remove(call) => return unpaired(call),
            InjectedItem::Call(_) | InjectedItem::Output { .. } => {}
            InjectedItem::User { .. }
            | InjectedItem::Developer { .. }
            | InjectedItem::Note { .. }
            | InjectedItem::Assistant { .. } => {}
        }
    }
    open.first().map_or(Ok(()), |call| unpaired(call))
}

fn unpaired(call: &str) -> Result<(), Refusal> {
    let call = call.to_owned();
    Err(Refusal::Unpaired { call })
}
