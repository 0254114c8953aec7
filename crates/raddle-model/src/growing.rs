//! Items of an answer on wires that give them no ids: what is said grows the item that is open.

use std::sync::Arc;

use serde_json::Value;

use crate::{Event, ItemKind};

/// What is being said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speech {
    Message,
    /// A summary of the thinking.
    Summary,
    /// The thinking itself.
    Thought,
}

/// The items of an answer, of which one at a time is open.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    count: usize,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    id: Arc<str>,
    speech: Speech,
    text: String,
}

impl Growing {
    /// What is open.
    pub(crate) fn open(&self) -> Option<Speech> {
        self.open.as_ref().map(|it| it.speech)
    }

    /// Says more, in an item that is begun if none is open. Whoever says something else than what is open
    /// closes that first.
    pub(crate) fn say(&mut self, speech: Speech, text: &str, said: &mut Vec<Event>) {
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                let id: Arc<str> = self.count.to_string().into();
                self.count += 1;
                let kind = match speech {
                    Speech::Message => ItemKind::Message,
                    Speech::Summary | Speech::Thought => ItemKind::Reasoning,
                };
                said.push(Event::Started {
                    id: id.clone(),
                    kind,
                });
                self.open.insert(Open {
                    id,
                    speech,
                    text: String::new(),
                })
            }
        };
        if text.is_empty() {
            return;
        }
        open.text.push_str(text);
        let (id, text) = (open.id.clone(), text.to_owned());
        said.push(match open.speech {
            Speech::Message => Event::Text { id, text },
            Speech::Summary => Event::Summary { id, part: 0, text },
            Speech::Thought => Event::Thought { id, part: 0, text },
        });
    }

    /// What is open is whole. `seal`: what thinking is to its vendor.
    pub(crate) fn close(&mut self, seal: impl FnOnce(&str) -> Value, said: &mut Vec<Event>) {
        let Some(Open { id, speech, text }) = self.open.take() else {
            return;
        };
        let parts = |text: String| Vec::from_iter((!text.is_empty()).then_some(text));
        said.push(match speech {
            Speech::Message => Event::Message {
                id,
                text,
                phase: None,
                sealed: None,
            },
            Speech::Summary | Speech::Thought => {
                let sealed = seal(&text);
                let (summary, content) = match speech {
                    Speech::Summary => (parts(text), Vec::new()),
                    _ => (Vec::new(), parts(text)),
                };
                Event::Reasoning {
                    id,
                    summary,
                    content,
                    sealed,
                }
            }
        });
    }
}
