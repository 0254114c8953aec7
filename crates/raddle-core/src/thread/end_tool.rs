//! The end of a tool run.

use super::{Decision, Thread, closing};
use crate::{CommandSource, EndTool, ItemBody, ItemPart, Refusal, Timestamp};

pub(super) fn decide(thread: &Thread, it: EndTool, now: Timestamp) -> Result<Decision, Refusal> {
    let turn = thread.turn.as_ref().ok_or(Refusal::ToolNotRunning)?;
    let open = thread
        .open_item(&it.item)
        .filter(|open| open.started)
        .ok_or(Refusal::ToolNotRunning)?;
    let mut bodies = Vec::new();
    closing::withdraw(thread, &it.item, &mut bodies);
    let mut item = open.item.clone();
    item.status = it.status;
    item.completed_at = Some(now);
    item.body = it.body;
    if let ItemBody::Command(command) = &mut item.body {
        // The output that was streamed is the complete output.
        if let Some(printed) = open.texts.get(&ItemPart::Printed) {
            command.printed = Some(printed.clone());
        }
        if open.item.is_users_command() {
            command.source = CommandSource::User;
        }
    }
    item.output = Some(it.output);
    bodies.push(closing::completed(turn, item));
    Ok(bodies.into())
}
