//! An open item: its text so far, and whether its tool may run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Gate, HunkDecision, Item, ItemBody, ItemPart, ItemStatus, Seq, Settings, Timestamp};

/// An item that is open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenItem {
    /// The item as it began.
    pub item: Item,
    /// Texts of the item so far.
    #[serde(with = "texts")]
    pub texts: BTreeMap<ItemPart, String>,
    /// Number of the model call that produced it.
    pub(crate) call: u32,
    pub(crate) gate: Option<Gate>,
    /// Whether its tool may start.
    pub(crate) ready: bool,
    /// Whether its tool was started.
    pub(crate) started: bool,
    /// Digest of the act that the policy judged, or the user approved.
    #[serde(default)]
    pub(crate) digest: Option<String>,
    /// Decisions on the hunks of its change, if the user approved a part of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) hunks: Vec<HunkDecision>,
    /// Working directory of the thread when the user was asked about its change. The ids of the hunks
    /// depend on it, and a client may change the settings while the request is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hunk_cwd: Option<String>,
    /// Bytes of text since it began or was last saved.
    pub(crate) unsaved_bytes: u64,
    /// Record with which it began.
    pub(crate) began: Seq,
    /// Record that saved it last. Its text between these two records can no longer be
    /// reconstructed.
    pub(crate) saved: Option<Seq>,
}

/// Serializes the texts as pairs, because JSON keys can only be strings.
mod texts {
    use super::{BTreeMap, ItemPart};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        texts: &BTreeMap<ItemPart, String>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        texts.iter().collect::<Vec<_>>().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<ItemPart, String>, D::Error> {
        Vec::<(ItemPart, String)>::deserialize(deserializer)
            .map(|texts| texts.into_iter().collect())
    }
}

impl OpenItem {
    /// Whether it is a command without approval. Clients learn that a thread waits before they see
    /// the command.
    pub(super) fn waits(&self) -> bool {
        let is_command = matches!(self.item.body, ItemBody::Command(_));
        is_command && self.gate == Some(Gate::Approval) && !self.ready
    }

    /// Whether it is a tool that a client runs.
    pub(crate) fn is_client_tool(&self) -> bool {
        matches!(self.item.body, ItemBody::ClientTool(_))
    }

    /// Whether it carries out a call of the model.
    pub fn is_tool(&self) -> bool {
        self.item.call.is_some()
    }

    /// Whether the model writes it.
    pub(crate) fn is_text(&self) -> bool {
        !self.is_tool() && !self.item.is_users_command()
    }

    /// Digest of the act that needs approval; once the tool was started, of the approved act.
    pub fn approved_digest(&self) -> Option<&str> {
        let digest = self.digest.as_deref();
        digest.filter(|_| self.gate == Some(Gate::Approval))
    }

    /// Decisions on the hunks of its change; empty if it was approved as a whole.
    pub fn hunks(&self) -> &[HunkDecision] {
        &self.hunks
    }

    /// Working directory on which the ids of its hunks depend. `settings`: those of the thread, for a
    /// state that an earlier version stored without it.
    pub fn hunk_cwd<'a>(&'a self, settings: &'a Settings) -> &'a str {
        self.hunk_cwd.as_deref().unwrap_or(&settings.cwd)
    }

    /// Returns the item with its text so far.
    pub fn current_item(&self) -> Item {
        let mut item = self.last_form(ItemStatus::InProgress, self.item.started_at);
        item.completed_at = None;
        item
    }

    /// Returns the item in its final form, with the text it has.
    pub(super) fn last_form(&self, status: ItemStatus, now: Timestamp) -> Item {
        let mut item = self.item.clone();
        item.status = status;
        item.completed_at = Some(now);
        let text = |part| self.texts.get(&part).cloned();
        match &mut item.body {
            ItemBody::AgentMessage(message) => {
                message.text = text(ItemPart::Text).unwrap_or_default();
            }
            ItemBody::Plan(plan) => plan.text = text(ItemPart::Text).unwrap_or_default(),
            ItemBody::Reasoning(reasoning) => {
                for (part, text) in &self.texts {
                    match part {
                        ItemPart::Summary(_) => reasoning.summary.push(text.clone()),
                        ItemPart::Content(_) => reasoning.content.push(text.clone()),
                        ItemPart::Text | ItemPart::Printed => {}
                    }
                }
            }
            ItemBody::Command(command) => command.printed = text(ItemPart::Printed),
            ItemBody::UserMessage(_)
            | ItemBody::HookPrompt(_)
            | ItemBody::ToolOutput(_)
            | ItemBody::Patch(_)
            | ItemBody::Mcp(_)
            | ItemBody::ClientTool(_)
            | ItemBody::Agents(_)
            | ItemBody::AgentNote(_)
            | ItemBody::WebSearch(_)
            | ItemBody::ImageView(_)
            | ItemBody::Sleep(_)
            | ItemBody::ImageMade(_)
            | ItemBody::ReviewEntered(_)
            | ItemBody::ReviewLeft(_)
            | ItemBody::Compaction {}
            | ItemBody::Tool(_) => {}
        }
        item
    }

    /// Returns the bytes of all its texts.
    pub fn bytes(&self) -> u64 {
        self.texts.values().map(|text| text.len() as u64).sum()
    }
}
