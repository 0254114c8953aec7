//! The system instructions of a model.

use raddle_core::{Family, Settings};

const GPT: &str = include_str!("instructions/gpt.md");
const CLAUDE: &str = include_str!("instructions/claude.md");
const GEMINI: &str = include_str!("instructions/gemini.md");
const OTHER: &str = include_str!("instructions/other.md");

/// Instructions for compacting the history.
pub(crate) const COMPACT: &str = include_str!("instructions/compact.md");

const FRIENDLY: &str = "Be warm and encouraging, and explain what may be new to the user.";
const PRAGMATIC: &str =
    "Be dry and to the point; leave out everything that does not help the work.";

/// Returns the instructions for a thread's model: the client's own or the default of the model
/// family, and a tone. Equal settings give equal bytes, so that a vendor's cache recognises them.
pub(crate) fn instructions(settings: &Settings) -> String {
    let family = Family::of(settings.model.as_deref());
    let base = settings.base_instructions.as_deref();
    let base = base
        .unwrap_or_else(|| default_instructions(family))
        .trim_end();
    match settings.personality.as_deref() {
        Some("friendly") => format!("{base}\n\n{FRIENDLY}\n"),
        Some("pragmatic") => format!("{base}\n\n{PRAGMATIC}\n"),
        _ => format!("{base}\n"),
    }
}

fn default_instructions(family: Family) -> &'static str {
    match family {
        Family::Gpt { .. } => GPT,
        Family::Claude => CLAUDE,
        Family::Gemini => GEMINI,
        Family::Other => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They are part of every call.
    #[test]
    fn they_are_short() {
        for text in [GPT, CLAUDE, GEMINI, OTHER, COMPACT] {
            assert!(text.len() < 2_500, "{} bytes: {text}", text.len());
        }
    }

    #[test]
    fn the_client_may_override_the_base_and_choose_a_tone() {
        let settings = |base: Option<&str>, tone: Option<&str>| Settings {
            base_instructions: base.map(str::to_owned),
            personality: tone.map(str::to_owned),
            ..Settings::default()
        };
        for (settings, expected) in [
            (settings(Some("Be a cat."), None), "Be a cat.\n".to_owned()),
            (
                settings(Some("Be a cat.\n"), Some("friendly")),
                format!("Be a cat.\n\n{FRIENDLY}\n"),
            ),
            (
                settings(Some(""), Some("pragmatic")),
                format!("\n\n{PRAGMATIC}\n"),
            ),
            (
                settings(Some("Be a cat."), Some("none")),
                "Be a cat.\n".to_owned(),
            ),
        ] {
            assert_eq!(instructions(&settings), expected);
        }
    }
}
