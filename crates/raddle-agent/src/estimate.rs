//! Estimates the tokens of a call whose provider reports no usage: the usual four bytes per token.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raddle_core::ports::{ModelEvent, Prompt};
use raddle_core::{
    ContextEntry, Input, ItemUpdate, MeteredUsage, ModelEnd, Price, SharedEntry, Usage,
};

const BYTES_PER_TOKEN: u64 = 4;

/// Bytes counted for an image of any size: vendors scale it down before a model reads it.
const IMAGE_BYTES: usize = 4096;

/// Meters one model call, shared by the task that receives its end and the task that interrupts it.
#[derive(Clone, Default)]
pub(crate) struct UsageMeter(Arc<Mutex<Option<MeteredCall>>>);

struct MeteredCall {
    estimate: Estimate,
    price: Option<Price>,
}

impl UsageMeter {
    /// Starts metering a call.
    pub(crate) fn begin(&self, prompt: &Prompt, price: Option<Price>) {
        let estimate = Estimate::of(prompt);
        *self.running() = Some(MeteredCall { estimate, price });
    }

    /// Counts an event. If it is an end without usage, sets the estimated usage. Returns whether it
    /// did.
    pub(crate) fn observe(&self, event: &mut ModelEvent) -> bool {
        let mut running = self.running();
        running
            .as_mut()
            .is_some_and(|it| it.estimate.observe(event))
    }

    /// Usage so far; `None` before the call.
    pub(crate) fn read(&self) -> Option<MeteredUsage> {
        let running = self.running();
        running.as_ref().map(|it| MeteredUsage {
            usage: it.estimate.usage(),
            price: it.price,
        })
    }

    fn running(&self) -> MutexGuard<'_, Option<MeteredCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sizes of the prompt and of the output. Most providers report usage, so the sum is computed only
/// on demand.
struct Estimate {
    entries: Vec<SharedEntry>,
    more_bytes: usize,
    written_bytes: usize,
    /// Whether the model has produced any output, and so has read the prompt.
    is_answered: bool,
}

impl Estimate {
    fn of(prompt: &Prompt) -> Self {
        let tools = prompt.tools.iter();
        let tools: usize = tools.map(|it| it.name.len() + it.description.len()).sum();
        Self {
            entries: prompt.entries.clone(),
            more_bytes: prompt.instructions.len() + tools,
            written_bytes: 0,
            is_answered: false,
        }
    }

    fn observe(&mut self, event: &mut ModelEvent) -> bool {
        self.written_bytes += match event {
            ModelEvent::Item(ItemUpdate::Text(it)) => it.text.len(),
            ModelEvent::Tool(_, call) => call.tool.len() + call.arguments.len(),
            ModelEvent::Item(ItemUpdate::Started(..) | ItemUpdate::Completed(..)) => 0,
            ModelEvent::Ended(end, usage) => {
                // A call that failed before its first output was rejected, and costs nothing.
                let counts = self.is_answered || matches!(end, ModelEnd::Done {});
                let is_estimated = usage.is_none() && counts;
                if is_estimated {
                    *usage = Some(self.usage());
                }
                return is_estimated;
            }
        };
        self.is_answered = true;
        false
    }

    fn usage(&self) -> Usage {
        let read: usize = self.entries.iter().map(|it| bytes(it)).sum();
        Usage {
            input: tokens(read + self.more_bytes),
            output: tokens(self.written_bytes),
            ..Usage::default()
        }
    }
}

fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(BYTES_PER_TOKEN)
}

fn bytes(entry: &ContextEntry) -> usize {
    let input = |it: &Input| match it {
        Input::Text { text, .. } => text.len(),
        _ => IMAGE_BYTES,
    };
    match entry {
        ContextEntry::Summary(text) | ContextEntry::Note(text) | ContextEntry::Developer(text) => {
            text.len()
        }
        ContextEntry::User(inputs) => inputs.iter().map(input).sum(),
        ContextEntry::Assistant { text, .. } => text.len(),
        // Only a vendor that reports usage can read these.
        ContextEntry::Reasoning(_) => 0,
        ContextEntry::Call(call) => call.tool.len() + call.arguments.len(),
        ContextEntry::Output { output, .. } => output.text.len(),
    }
}

#[cfg(test)]
mod tests {
    use raddle_core::{AppendText, Failure, FailureKind, ItemId, ItemPart, Timestamp};

    use super::*;

    #[test]
    fn four_bytes_count_as_a_token_without_reported_usage() {
        let broke = || ModelEnd::Broke {
            error: Failure::new(FailureKind::VendorFailed, "gone"),
            retry_at: Timestamp(0),
        };
        let failed = || ModelEnd::Failed {
            error: Failure::new(FailureKind::VendorFailed, "gone"),
        };
        let usage = |output| {
            Some(Usage {
                input: 101,
                output,
                ..Usage::default()
            })
        };
        let zero = Some(Usage::default());
        let none = None;
        for (text, end, reported, expected) in [
            ("12345", ModelEnd::Done {}, none, usage(2)),
            ("", ModelEnd::Done {}, none, usage(0)),
            ("12345", ModelEnd::Done {}, zero, zero),
            ("12345", broke(), none, usage(2)),
            ("12345", broke(), zero, zero),
            ("12345", failed(), none, usage(2)),
            ("", broke(), none, none),
            ("", failed(), none, none),
        ] {
            let mut estimate = Estimate {
                entries: vec![ContextEntry::Note("x".repeat(400)).into()],
                more_bytes: 1,
                written_bytes: 0,
                is_answered: false,
            };
            if !text.is_empty() {
                let text = AppendText {
                    item: ItemId::mint(),
                    part: ItemPart::Text,
                    text: text.to_owned(),
                };
                estimate.observe(&mut ModelEvent::Item(ItemUpdate::Text(text)));
            }
            let mut last = ModelEvent::Ended(end.clone(), reported);
            let estimated = estimate.observe(&mut last);
            assert_eq!(
                last,
                ModelEvent::Ended(end.clone(), expected),
                "{text:?} {end:?}"
            );
            assert_eq!(estimated, reported != expected, "{text:?} {end:?}");
        }
    }
}
