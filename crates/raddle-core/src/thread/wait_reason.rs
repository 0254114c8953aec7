//! Reason why a running turn waits.

use super::{OpenItem, Thread};
use crate::{Ask, ItemBody, ItemId};

/// Reason why a turn waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// A model call, with the model's name.
    Model(Option<String>),
    /// A tool that is running.
    Tool(ToolRef),
    /// An approval by the user.
    Approval(ToolRef),
    /// An answer of the user.
    Question(ToolRef),
    /// A retry of this model.
    Retry(Option<String>),
    /// Nothing: it continues at once.
    Nothing,
}

/// A reference to a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRef {
    /// Item of the call, or the item that a request to the user is about.
    pub item: ItemId,
    /// Name of the tool as the model knows it, or the line of a command that the user runs.
    pub name: Option<String>,
}

impl Thread {
    /// Returns why the running turn waits. Of several reasons, requests to the user come first.
    pub fn waiting_for(&self) -> Option<WaitReason> {
        let turn = self.turn.as_ref()?;
        let tool_ref = |item: &ItemId| ToolRef {
            item: item.clone(),
            name: self.open_item(item).and_then(name),
        };
        let request = self.requests.values().find_map(|open| match open.ask {
            Ask::Command(_) | Ask::Patch(_) | Ask::Tool(_) | Ask::Permissions(_) => {
                Some(WaitReason::Approval(tool_ref(&open.item)))
            }
            // The turn does not wait for it.
            _ if open.ask.trust_folder().is_some() => None,
            Ask::Questions(_) | Ask::Elicitation(_) => {
                Some(WaitReason::Question(tool_ref(&open.item)))
            }
            Ask::ClientTool {} => None,
        });
        if request.is_some() {
            return request;
        }
        let model = || self.asked.model.clone();
        if turn.model.is_some() {
            return Some(WaitReason::Model(model()));
        }
        let runs = |open: &&OpenItem| open.started || self.is_with_client(&open.item.id);
        if let Some(open) = turn.items.iter().find(runs) {
            return Some(WaitReason::Tool(tool_ref(&open.item.id)));
        }
        Some(match turn.retry_at {
            Some(_) => WaitReason::Retry(model()),
            None => WaitReason::Nothing,
        })
    }
}

fn name(open: &OpenItem) -> Option<String> {
    match (&open.item.call, &open.item.body) {
        (Some(call), _) => Some(call.tool.clone()),
        (None, ItemBody::Command(it)) => Some(it.command.clone()),
        (None, _) => None,
    }
}
