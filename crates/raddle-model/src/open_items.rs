//! Items of an answer on wires that give them no ids: text is added to the open item.

use std::sync::Arc;

use serde_json::Value;

use crate::{ItemKind, StreamEvent};

/// Kind of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextKind {
    Message,
    /// A summary of the thinking.
    Summary,
    /// The thinking itself, not a summary.
    Thought,
}

/// The items of an answer, of which one at a time is open.
#[derive(Debug, Default)]
pub(crate) struct OpenItems {
    count: usize,
    open: Option<OpenText>,
}

#[derive(Debug)]
struct OpenText {
    id: Arc<str>,
    kind: TextKind,
    text: String,
}

impl OpenItems {
    /// Returns the kind of the open item.
    pub(crate) fn open(&self) -> Option<TextKind> {
        self.open.as_ref().map(|it| it.kind)
    }

    /// Adds text to the open item, or opens one. The caller closes an open item of another kind
    /// first.
    pub(crate) fn add_text(
        &mut self,
        text_kind: TextKind,
        text: &str,
        events: &mut Vec<StreamEvent>,
    ) {
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                let id: Arc<str> = self.count.to_string().into();
                self.count += 1;
                let kind = match text_kind {
                    TextKind::Message => ItemKind::Message,
                    TextKind::Summary | TextKind::Thought => ItemKind::Reasoning,
                };
                events.push(StreamEvent::Started {
                    id: id.clone(),
                    kind,
                });
                self.open.insert(OpenText {
                    id,
                    kind: text_kind,
                    text: String::new(),
                })
            }
        };
        if text.is_empty() {
            return;
        }
        open.text.push_str(text);
        let (id, text) = (open.id.clone(), text.to_owned());
        events.push(match open.kind {
            TextKind::Message => StreamEvent::Text { id, text },
            TextKind::Summary => StreamEvent::Summary { id, part: 0, text },
            TextKind::Thought => StreamEvent::Thought { id, part: 0, text },
        });
    }

    /// Closes the open item. `seal` returns the opaque data of thinking for its vendor.
    pub(crate) fn close(
        &mut self,
        seal: impl FnOnce(&str) -> Value,
        events: &mut Vec<StreamEvent>,
    ) {
        let Some(OpenText {
            id,
            kind: text_kind,
            text,
        }) = self.open.take()
        else {
            return;
        };
        let parts = |text: String| Vec::from_iter((!text.is_empty()).then_some(text));
        events.push(match text_kind {
            TextKind::Message => StreamEvent::Message {
                id,
                text,
                phase: None,
                sealed: None,
            },
            TextKind::Summary | TextKind::Thought => {
                let sealed = seal(&text);
                let (summary, content) = match text_kind {
                    TextKind::Summary => (parts(text), Vec::new()),
                    _ => (Vec::new(), parts(text)),
                };
                StreamEvent::Reasoning {
                    id,
                    summary,
                    content,
                    sealed,
                }
            }
        });
    }
}
