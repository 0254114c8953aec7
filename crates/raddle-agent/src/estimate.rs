//! How many tokens a call used, where its provider does not say: one for four bytes, as everyone does.

use raddle_core::ports::{Prompt, Said};
use raddle_core::{Entry, Input, ModelEnd, Piece, Usage};

const BYTES_PER_TOKEN: u64 = 4;

/// What an image counts for, whatever its size: vendors make it small before a model sees it.
const IMAGE_BYTES: usize = 4096;

/// What went to the model and came from it. Most providers say, so nothing is summed up before one does not.
pub(crate) struct Estimate {
    entries: Vec<Piece>,
    more_bytes: usize,
    written_bytes: usize,
}

impl Estimate {
    /// Before the model has said anything.
    pub(crate) fn of(prompt: &Prompt) -> Self {
        let tools = prompt.tools.iter();
        let tools: usize = tools.map(|it| it.name.len() + it.description.len()).sum();
        Self {
            entries: prompt.entries.clone(),
            more_bytes: prompt.instructions.len() + tools,
            written_bytes: 0,
        }
    }

    /// Something was said.
    pub(crate) fn hear(&mut self, said: &Said) {
        let bytes = match said {
            Said::Text(_, _, text) => text.len(),
            Said::Tool(_, call) => call.tool.len() + call.arguments.len(),
            Said::Started(..) | Said::Completed(..) | Said::Ended(..) => 0,
        };
        self.written_bytes += bytes;
    }

    /// Puts the estimate into the end of an answer that came whole and does not say. Says whether it did.
    pub(crate) fn fill_in(&self, said: &mut Said) -> bool {
        let Said::Ended(ModelEnd::Done {}, usage @ None) = said else {
            return false;
        };
        let read: usize = self.entries.iter().map(|it| bytes(it)).sum();
        *usage = Some(Usage {
            input: tokens(read + self.more_bytes),
            output: tokens(self.written_bytes),
            ..Usage::default()
        });
        true
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
    use raddle_core::{ItemId, Part};

    use super::*;

    #[test]
    fn four_bytes_are_a_token_where_nobody_says_otherwise() {
        let mut estimate = Estimate {
            entries: vec![Entry::Note("x".repeat(400)).into()],
            more_bytes: 1,
            written_bytes: 0,
        };
        let text = Said::Text(ItemId::mint(), Part::Text, "12345".to_owned());
        estimate.hear(&text);
        let usage = Usage {
            input: 101,
            output: 2,
            ..Usage::default()
        };
        let mut silent = Said::Ended(ModelEnd::Done {}, None);
        assert!(estimate.fill_in(&mut silent));
        assert_eq!(silent, Said::Ended(ModelEnd::Done {}, Some(usage)));
        let mut said = Said::Ended(ModelEnd::Done {}, Some(Usage::default()));
        assert!(!estimate.fill_in(&mut said));
        let mut lost = Said::Ended(ModelEnd::OwnerLost {}, None);
        assert!(!estimate.fill_in(&mut lost));
    }
}
