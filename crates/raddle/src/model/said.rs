//! What a vendor's events mean to the agent.

use std::collections::BTreeMap;
use std::sync::Arc;

use raddle_core::ports::Said;
use raddle_core::{
    AgentMessage, Call, ItemBody, ItemId, ModelEnd, Part, Phase, Reasoning, Sealed, Usage,
};
use raddle_model::{CallForm, Event, ItemKind, Tokens};
use serde_json::Value;

/// What an event means to the agent.
pub(super) fn said(event: Event, ids: &mut BTreeMap<Arc<str>, ItemId>, vendor: &str) -> Said {
    let seal = |value: Value| Sealed {
        vendor: vendor.to_owned(),
        value,
    };
    let mut ours = |id: Arc<str>| ids.entry(id).or_insert_with(ItemId::mint).clone();
    match event {
        Event::Started { id, kind } => Said::Started(
            ours(id),
            match kind {
                ItemKind::Message => ItemBody::AgentMessage(AgentMessage::default()),
                ItemKind::Reasoning => ItemBody::Reasoning(Reasoning::default()),
            },
        ),
        Event::Text { id, text } => Said::Text(ours(id), Part::Text, text),
        Event::Summary { id, part, text } => Said::Text(ours(id), Part::Summary(part), text),
        Event::Thought { id, part, text } => Said::Text(ours(id), Part::Content(part), text),
        Event::Message {
            id,
            text,
            phase,
            sealed,
        } => {
            let phase = phase.as_deref().and_then(phase_of);
            let body = ItemBody::AgentMessage(AgentMessage { text, phase });
            Said::Completed(ours(id), body, sealed.map(seal))
        }
        Event::Reasoning {
            id,
            summary,
            content,
            sealed,
        } => {
            let body = ItemBody::Reasoning(Reasoning { summary, content });
            let sealed = (!sealed.is_null()).then(|| seal(sealed));
            Said::Completed(ours(id), body, sealed)
        }
        Event::Call {
            call_id,
            name,
            arguments,
            form,
        } => {
            let call = Call {
                id: call_id,
                tool: name,
                arguments,
                freeform: form == CallForm::Freeform,
                alone: false,
            };
            Said::Tool(ItemId::mint(), call)
        }
        Event::Completed(tokens) => Said::Ended(ModelEnd::Done {}, tokens.map(usage)),
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
