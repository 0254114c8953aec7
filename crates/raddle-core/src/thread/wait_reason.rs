//! What a turn that runs waits for.

use super::{OpenItem, Thread};
use crate::{Ask, ItemBody, ItemId};

/// What a turn waits for. Items are the tools' own, or what is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// The model of this name.
    Model(Option<String>),
    /// A tool that runs.
    Tool(ToolRef),
    /// Someone's yes or no.
    Approval(ToolRef),
    /// Someone's answer.
    Question(ToolRef),
    /// The time to call this model again.
    Retry(Option<String>),
    /// Nobody: it goes on at once.
    Nothing,
}

/// Which call it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolRef {
    /// The item.
    pub item: ItemId,
    /// The tool's name as the model knows it, or the line of a command that the user runs.
    pub name: Option<String>,
}

impl Thread {
    /// What the turn that runs waits for. Where that is several things, people come first.
    pub fn waiting_for(&self) -> Option<WaitReason> {
        let turn = self.turn.as_ref()?;
        let about = |item: &ItemId| ToolRef {
            item: item.clone(),
            name: self.open_item(item).and_then(name),
        };
        let asked = self.requests.values().find_map(|open| match open.ask {
            Ask::Command(_) | Ask::Patch(_) | Ask::Tool(_) | Ask::Permissions(_) => {
                Some(WaitReason::Approval(about(&open.item)))
            }
            Ask::Questions(_) | Ask::Elicitation(_) => {
                Some(WaitReason::Question(about(&open.item)))
            }
            Ask::ClientTool {} => None,
        });
        if asked.is_some() {
            return asked;
        }
        let model = || self.asked.model.clone();
        if turn.model.is_some() {
            return Some(WaitReason::Model(model()));
        }
        let runs = |open: &&OpenItem| open.started || self.is_with_client(&open.item.id);
        if let Some(open) = turn.items.iter().find(runs) {
            return Some(WaitReason::Tool(about(&open.item.id)));
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
