//! Maps stream events of a vendor to model events of the agent.

use std::collections::BTreeMap;
use std::sync::Arc;

use raddle_core::ports::ModelEvent;
use raddle_core::{
    AgentMessage, AppendText, ItemBody, ItemId, ItemPart, ItemUpdate, ModelEnd, Phase, Reasoning,
    Sealed, ToolCall, Usage,
};
use raddle_model::{CallForm, ItemKind, StreamEvent, Tokens};
use serde_json::Value;

/// Maps an event. Assigns our ids to the vendor's items.
pub(crate) fn model_event(
    event: StreamEvent,
    ids: &mut BTreeMap<Arc<str>, ItemId>,
    vendor: &str,
) -> ModelEvent {
    let seal = |value: Value| Sealed {
        vendor: vendor.to_owned(),
        value,
    };
    let mut ours = |id: Arc<str>| ids.entry(id).or_insert_with(ItemId::mint).clone();
    let append = |item, part, text| {
        let text = AppendText { item, part, text };
        ModelEvent::Item(ItemUpdate::Text(text))
    };
    match event {
        StreamEvent::Started { id, kind } => {
            let body = match kind {
                ItemKind::Message => ItemBody::AgentMessage(AgentMessage::default()),
                ItemKind::Reasoning => ItemBody::Reasoning(Reasoning::default()),
            };
            ModelEvent::Item(ItemUpdate::Started(ours(id), Box::new(body)))
        }
        StreamEvent::Text { id, text } => append(ours(id), ItemPart::Text, text),
        StreamEvent::Summary { id, part, text } => append(ours(id), ItemPart::Summary(part), text),
        StreamEvent::Thought { id, part, text } => append(ours(id), ItemPart::Content(part), text),
        StreamEvent::Message {
            id,
            text,
            phase,
            sealed,
        } => {
            let phase = phase.as_deref().and_then(phase_of);
            let body = Box::new(ItemBody::AgentMessage(AgentMessage { text, phase }));
            ModelEvent::Item(ItemUpdate::Completed(ours(id), body, sealed.map(seal)))
        }
        StreamEvent::Reasoning {
            id,
            summary,
            content,
            sealed,
        } => {
            let body = Box::new(ItemBody::Reasoning(Reasoning { summary, content }));
            let sealed = (!sealed.is_null()).then(|| seal(sealed));
            ModelEvent::Item(ItemUpdate::Completed(ours(id), body, sealed))
        }
        StreamEvent::Call {
            call_id,
            name,
            arguments,
            form,
        } => {
            let call = ToolCall {
                id: call_id,
                tool: name,
                arguments,
                freeform: form == CallForm::Freeform,
                alone: false,
            };
            ModelEvent::Tool(ItemId::mint(), call)
        }
        StreamEvent::Completed(tokens) => ModelEvent::Ended(ModelEnd::Done {}, tokens.map(usage)),
    }
}

fn phase_of(phase: &str) -> Option<Phase> {
    match phase {
        "commentary" => Some(Phase::Commentary),
        "partial_answer" => Some(Phase::PartialAnswer),
        "final_answer" => Some(Phase::FinalAnswer),
        _ => None,
    }
}

fn usage(tokens: Tokens) -> Usage {
    Usage {
        input: tokens.input,
        cached: tokens.cached,
        cache_written: tokens.cache_written,
        output: tokens.output,
        reasoning: tokens.reasoning,
    }
}
