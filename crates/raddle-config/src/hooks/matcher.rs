//! Matchers: the tools, or the causes of an event, on which a hook runs.

use regex::{Regex, RegexBuilder};

/// Size of a compiled pattern, which the author of the hook wrote.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Selection of events by names.
#[derive(Clone, Debug)]
pub enum Matcher {
    /// All events.
    All,
    /// Exactly these names.
    Names(Vec<String>),
    /// Names in which the pattern occurs.
    Pattern(Box<Regex>),
}

impl Matcher {
    /// Parses a matcher: names separated by `|`, or else a regular expression.
    pub fn parse(text: &str) -> Result<Self, regex::Error> {
        if text.is_empty() || text == "*" {
            return Ok(Self::All);
        }
        let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-' | '|');
        if text.chars().all(is_plain) {
            return Ok(Self::Names(text.split('|').map(str::to_owned).collect()));
        }
        let pattern = RegexBuilder::new(text)
            .size_limit(PATTERN_BYTES_MAX)
            .build();
        Ok(Self::Pattern(Box::new(pattern?)))
    }

    /// Whether one of these names is selected.
    pub fn selects(&self, subjects: &[String]) -> bool {
        match self {
            Self::All => true,
            Self::Names(names) => subjects.iter().any(|it| names.contains(it)),
            Self::Pattern(pattern) => subjects.iter().any(|it| pattern.is_match(it)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_whole_and_patterns_anywhere() {
        for (matcher, subject, expected) in [
            ("", "Bash", true),
            ("*", "Bash", true),
            ("Bash", "Bash", true),
            ("Bash", "BashTool", false),
            ("Edit|Bash", "Bash", true),
            ("Edit|Write", "Bash", false),
            ("^Ba.h$", "Bash", true),
            ("mcp__.*", "mcp__files__read", true),
            ("mcp__.*", "Bash", false),
        ] {
            let parsed = Matcher::parse(matcher).expect("a matcher");
            let actual = parsed.selects(&[subject.to_owned()]);
            assert_eq!(actual, expected, "{matcher} and {subject}");
        }
        assert!(Matcher::parse("(").is_err());
    }
}
