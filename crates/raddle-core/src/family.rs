//! Families of models that were trained alike.

/// A family of models. Its members get the same instructions and know the same tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Models that know few tools, and a shell for everything else.
    Gpt {
        /// Whether tool input can be constrained by a grammar.
        grammar: bool,
    },
    /// Models that know one tool for each task, like all that follow.
    Claude,
    /// Like `Claude`, from another vendor.
    Gemini,
    /// Any model of another family.
    Other,
}

impl Family {
    /// Returns the family by the model's name, after the vendor's prefix: `vendor/gpt-5`.
    pub fn of(model: Option<&str>) -> Self {
        let name = model.unwrap_or_default().rsplit('/').next();
        let name = name.unwrap_or_default().to_ascii_lowercase();
        let is = |family: &str| name.starts_with(family);
        // The open models of that vendor were trained differently.
        if is("gpt-oss") {
            Self::Other
        } else if ["gpt-", "codex", "o1", "o3", "o4", "mock"]
            .into_iter()
            .any(is)
        {
            let grammar = is("mock") || is("codex") && !is("codex-mini") || generation(&name) >= 5;
            Self::Gpt { grammar }
        } else if is("claude") {
            Self::Claude
        } else if is("gemini") {
            Self::Gemini
        } else {
            Self::Other
        }
    }
}

/// Returns the first number in `gpt-5.6-mini`, or 0.
fn generation(name: &str) -> u32 {
    let rest = name.strip_prefix("gpt-").unwrap_or_default();
    let end = rest.find(|it: char| !it.is_ascii_digit());
    rest[..end.unwrap_or(rest.len())].parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_name() {
        let gpt = |grammar| Family::Gpt { grammar };
        for (model, expected) in [
            ("gpt-5.6", gpt(true)),
            ("openai/GPT-5", gpt(true)),
            ("gpt-12-mini", gpt(true)),
            ("codex-next", gpt(true)),
            ("mock", gpt(true)),
            ("gpt-4.1", gpt(false)),
            ("gpt-image", gpt(false)),
            ("codex-mini-latest", gpt(false)),
            ("o3-mini", gpt(false)),
            ("gpt-oss-20b", Family::Other),
            ("openai/gpt-oss-120b", Family::Other),
            ("anthropic/claude-opus", Family::Claude),
            ("gemini-3-pro", Family::Gemini),
            ("qwen3:8b", Family::Other),
            ("", Family::Other),
        ] {
            assert_eq!(Family::of(Some(model)), expected, "{model}");
        }
        assert_eq!(Family::of(None), Family::Other);
    }
}
