//! Items of an answer on wires that give them no ids: what is said grows the item that is open.

use std::sync::Arc;

use serde_json::Value;

use crate::{ItemKind, StreamEvent};

/// What is being said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextKind {
    Message,
    /// A summary of the thinking.
    Summary,
    /// The thinking itself.
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
    /// What is open.
    pub(crate) fn open(&self) -> Option<TextKind> {
        self.open.as_ref().map(|it| it.kind)
    }

    /// Says more, in an item that is begun if none is open. Whoever says something else than what is open
    /// closes that first.
    pub(crate) fn say(&mut self, speech: TextKind, text: &str, said: &mut Vec<StreamEvent>) {
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                let id: Arc<str> = self.count.to_string().into();
                self.count += 1;
                let kind = match speech {
                    TextKind::Message => ItemKind::Message,
                    TextKind::Summary | TextKind::Thought => ItemKind::Reasoning,
                };
                said.push(StreamEvent::Started {
                    id: id.clone(),
                    kind,
                });
                self.open.insert(OpenText {
                    id,
                    kind: speech,
                    text: String::new(),
                })
            }
        };
        if text.is_empty() {
            return;
        }
        open.text.push_str(text);
        let (id, text) = (open.id.clone(), text.to_owned());
        said.push(match open.kind {
            TextKind::Message => StreamEvent::Text { id, text },
            TextKind::Summary => StreamEvent::Summary { id, part: 0, text },
            TextKind::Thought => StreamEvent::Thought { id, part: 0, text },
        });
    }

    /// What is open is whole. `seal`: what thinking is to its vendor.
    pub(crate) fn close(&mut self, seal: impl FnOnce(&str) -> Value, said: &mut Vec<StreamEvent>) {
        let Some(OpenText {
            id,
            kind: speech,
            text,
        }) = self.open.take()
        else {
            return;
        };
        let parts = |text: String| Vec::from_iter((!text.is_empty()).then_some(text));
        said.push(match speech {
            TextKind::Message => StreamEvent::Message {
                id,
                text,
                phase: None,
                sealed: None,
            },
            TextKind::Summary | TextKind::Thought => {
                let sealed = seal(&text);
                let (summary, content) = match speech {
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
