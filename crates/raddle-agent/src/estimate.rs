//! How many tokens a call used, where its provider does not say: one for four bytes, as everyone does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use raddle_core::ports::{Prompt, Said};
use raddle_core::{Entry, Input, Metered, ModelEnd, Piece, Price, Usage};

const BYTES_PER_TOKEN: u64 = 4;

/// What an image counts for, whatever its size: vendors make it small before a model sees it.
const IMAGE_BYTES: usize = 4096;

/// Counts what one call uses, for whoever hears its end and for whoever cuts it off.
#[derive(Clone, Default)]
pub(crate) struct Meter(Arc<Mutex<Option<Running>>>);

struct Running {
    estimate: Estimate,
    price: Option<Price>,
}

impl Meter {
    /// The model is asked now.
    pub(crate) fn begin(&self, prompt: &Prompt, price: Option<Price>) {
        let estimate = Estimate::of(prompt);
        *self.running() = Some(Running { estimate, price });
    }

    /// Something was said. If that is an end which does not say what was used, it does now; whether it does so only
    /// because of this.
    pub(crate) fn hear(&self, said: &mut Said) -> bool {
        let mut running = self.running();
        running.as_mut().is_some_and(|it| it.estimate.hear(said))
    }

    /// What was used so far; nothing before the model is asked.
    pub(crate) fn read(&self) -> Option<Metered> {
        let running = self.running();
        running.as_ref().map(|it| Metered {
            usage: it.estimate.usage(),
            price: it.price,
        })
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What went to the model and came from it. Most providers say, so nothing is summed up before one does not.
struct Estimate {
    entries: Vec<Piece>,
    more_bytes: usize,
    written_bytes: usize,
    /// Whether the model has said anything, and so has read what it was sent.
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

    fn hear(&mut self, said: &mut Said) -> bool {
        self.written_bytes += match said {
            Said::Text(_, _, text) => text.len(),
            Said::Tool(_, call) => call.tool.len() + call.arguments.len(),
            Said::Started(..) | Said::Completed(..) => 0,
            Said::Ended(end, usage) => {
                // A call that failed before its first word was refused, and a refusal costs nothing.
                let counts = self.is_answered || matches!(end, ModelEnd::Done {});
                let is_silent = usage.is_none() && counts;
                if is_silent {
                    *usage = Some(self.usage());
                }
                return is_silent;
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

fn bytes(entry: &Entry) -> usize {
    let input = |it: &Input| match it {
        Input::Text { text, .. } => text.len(),
        _ => IMAGE_BYTES,
    };
    match entry {
        Entry::Summary(text) | Entry::Note(text) | Entry::Developer(text) => text.len(),
        Entry::User(inputs) => inputs.iter().map(input).sum(),
        Entry::Assistant { text, .. } => text.len(),
        // Only a vendor that says what it used can read these.
        Entry::Reasoning(_) => 0,
        Entry::Call(call) => call.tool.len() + call.arguments.len(),
        Entry::Output { output, .. } => output.text.len(),
    }
}

#[cfg(test)]
mod tests {
    use raddle_core::{Failure, FailureKind, ItemId, Part, Timestamp};

    use super::*;

    #[test]
    fn four_bytes_are_a_token_where_nobody_says_otherwise() {
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
        let said = Some(Usage::default());
        let none = None;
        for (text, end, told, wanted) in [
            ("12345", ModelEnd::Done {}, none, usage(2)),
            ("", ModelEnd::Done {}, none, usage(0)),
            ("12345", ModelEnd::Done {}, said, said),
            ("12345", broke(), none, usage(2)),
            ("12345", broke(), said, said),
            ("12345", failed(), none, usage(2)),
            ("", broke(), none, none),
            ("", failed(), none, none),
        ] {
            let mut estimate = Estimate {
                entries: vec![Entry::Note("x".repeat(400)).into()],
                more_bytes: 1,
                written_bytes: 0,
                is_answered: false,
            };
            if !text.is_empty() {
                estimate.hear(&mut Said::Text(ItemId::mint(), Part::Text, text.to_owned()));
            }
            let mut last = Said::Ended(end.clone(), told);
            let estimated = estimate.hear(&mut last);
            assert_eq!(last, Said::Ended(end.clone(), wanted), "{text:?} {end:?}");
            assert_eq!(estimated, told != wanted, "{text:?} {end:?}");
        }
    }
}
