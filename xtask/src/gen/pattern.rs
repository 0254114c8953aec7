//! Messages of a conversation: JSON in which `…` matches anything and `$name` is a variable.

/// Longest line of a layout, in characters.
const COLUMNS_MAX: usize = 90;

/// Comment in place of members or elements that a pattern does not show.
const REST: &str = "/* … */";

/// Value of each variable in an example. Other variables are shown by their name.
const VARIABLES: &[(&str, &str)] = &[
    ("home", "/home/ada/.local/state/raddle"),
    ("workspace", "/home/ada/loom"),
    ("folder", "/home/ada/loom"),
    ("file", "/home/ada/loom/cloth.txt"),
    ("thread", "019a94c2-7d10-7f3b-9a51-2c60e1b7d401"),
    ("fork", "019a94c2-8a42-7c19-b0d7-51f2c9e04a12"),
    ("turn", "019a94c2-9b07-7e88-8f24-0d3a6b95c723"),
    ("compaction", "019a94c2-9f31-7a05-a6c8-7e41d2f80b34"),
    ("answer", "019a94c2-a1c5-7b60-93ee-84b7f05d1e45"),
    ("message", "019a94c2-a0d2-7d97-8b13-6f92e3a4c056"),
    ("item", "019a94c2-a2e9-70f4-bd5a-1c8e7f63a967"),
    ("first", "019a94c2-b15c-7342-9e07-a5d0c4b2f878"),
    ("second", "019a94c2-b28e-7615-87f9-3b6e9d1ca089"),
    ("one", "019a94c2-b3a7-78d6-a142-c97f5e0b2d9a"),
    ("two", "019a94c2-b4f0-7a29-9cb5-48d1e6f73cab"),
    ("next", "eyJhZnRlciI6NDJ9"),
    ("back", "eyJiZWZvcmUiOjQyfQ"),
    ("turns", "eyJ0dXJucyI6Mn0"),
    ("items", "eyJpdGVtcyI6NX0"),
    ("front", "eyJiZWZvcmUiOjF9"),
    ("version", "0.1.0"),
    ("os", "linux"),
    ("system", "Linux 6.12; x86_64"),
    ("terminal", "xterm-256color"),
];

/// A message or a part of it.
pub enum Pattern {
    /// `…` in the place of a value.
    Anything,
    /// JSON text of a string with its quotes, a number, a boolean or null.
    Scalar(String),
    List {
        elements: Vec<Self>,
        has_rest: bool,
    },
    Object {
        /// Members by name; the name has its quotes.
        members: Vec<(String, Self)>,
        has_rest: bool,
    },
}

impl Pattern {
    /// Parses a whole line. `None` if it is not a pattern, such as a raw frame.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parser = Parser { rest: text };
        let pattern = parser.value()?;
        parser.rest.trim().is_empty().then_some(pattern)
    }

    /// Returns the member of an object.
    pub fn member(&self, name: &str) -> Option<&Self> {
        let Self::Object { members, .. } = self else {
            return None;
        };
        let found = members.iter().find(|(it, _)| it.trim_matches('"') == name);
        found.map(|(_, value)| value)
    }

    /// Returns the JSON text of a scalar member.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.member(name)? {
            Self::Scalar(text) => Some(text),
            _ => None,
        }
    }

    /// Returns whether it is an object that shows none of its members.
    pub fn is_blank(&self) -> bool {
        match self {
            Self::Anything => true,
            Self::Object { members, has_rest } => members.is_empty() && *has_rest,
            _ => false,
        }
    }

    /// Returns the text, with objects and lists on one line where they fit.
    pub fn layout(&self) -> String {
        self.layout_at(0, 0)
    }

    /// `before` is the number of characters before and after it on its line.
    fn layout_at(&self, indent: usize, before: usize) -> String {
        let line = self.line();
        if indent + before + line.chars().count() <= COLUMNS_MAX {
            return line;
        }
        let inner = indent + 2;
        let (open, parts, has_rest, close) = match self {
            Self::Anything | Self::Scalar(_) => return line,
            Self::List { elements, has_rest } => {
                let parts = elements.iter().map(|it| it.layout_at(inner, 1));
                ('[', parts.collect::<Vec<_>>(), *has_rest, ']')
            }
            Self::Object { members, has_rest } => {
                let parts = members.iter().map(|(name, value)| {
                    let before = name.chars().count() + 3;
                    format!("{name}: {}", value.layout_at(inner, before))
                });
                ('{', parts.collect(), *has_rest, '}')
            }
        };
        let pad = " ".repeat(inner);
        let mut body = parts.join(&format!(",\n{pad}"));
        if has_rest {
            body += &format!("\n{pad}{REST}");
        }
        format!("{open}\n{pad}{body}\n{}{close}", " ".repeat(indent))
    }

    /// Returns the text on one line.
    fn line(&self) -> String {
        let joined = |parts: Vec<String>, has_rest: bool| {
            let mut text = parts.join(", ");
            if has_rest {
                text += if text.is_empty() { "" } else { " " };
                text += REST;
            }
            text
        };
        match self {
            Self::Anything => String::from("null"),
            Self::Scalar(text) => with_values(text),
            Self::List { elements, has_rest } => {
                let parts = elements.iter().map(Self::line).collect();
                format!("[{}]", joined(parts, *has_rest))
            }
            Self::Object { members, has_rest } => {
                let parts = members
                    .iter()
                    .map(|(name, value)| format!("{name}: {}", value.line()));
                match joined(parts.collect(), *has_rest).as_str() {
                    "" => String::from("{}"),
                    text => format!("{{ {text} }}"),
                }
            }
        }
    }
}

/// Replaces the variables of a string. A name in capitals is one of a shell, and stays.
fn with_values(text: &str) -> String {
    let mut pieces = text.split('$');
    let mut replaced = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(|it: char| !it.is_ascii_lowercase());
        let (name, after) = piece.split_at(end.unwrap_or(piece.len()));
        let value = VARIABLES.iter().find(|(it, _)| *it == name);
        replaced += match value {
            Some((_, value)) => *value,
            None if name.is_empty() => "$",
            None => name,
        };
        replaced += after;
    }
    replaced
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    /// Skips white space, and this text if it is next.
    fn take(&mut self, expected: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(expected) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn value(&mut self) -> Option<Pattern> {
        if self.take("…") {
            return Some(Pattern::Anything);
        }
        if self.take("[") {
            return self.list();
        }
        if self.take("{") {
            return self.object();
        }
        let scalar = if self.rest.starts_with('"') {
            self.string()?
        } else {
            self.bare()?
        };
        Some(Pattern::Scalar(scalar.to_owned()))
    }

    fn list(&mut self) -> Option<Pattern> {
        let (mut elements, mut has_rest) = (Vec::new(), false);
        while !self.take("]") {
            match self.value()? {
                Pattern::Anything => has_rest = true,
                element => elements.push(element),
            }
            if !self.take(",") && !self.rest.starts_with(']') {
                return None;
            }
        }
        Some(Pattern::List { elements, has_rest })
    }

    fn object(&mut self) -> Option<Pattern> {
        let (mut members, mut has_rest) = (Vec::new(), false);
        while !self.take("}") {
            if self.take("…") {
                has_rest = true;
            } else {
                let name = self.string()?.to_owned();
                if !self.take(":") {
                    return None;
                }
                match self.value()? {
                    Pattern::Anything => has_rest = true,
                    value => members.push((name, value)),
                }
            }
            if !self.take(",") && !self.rest.starts_with('}') {
                return None;
            }
        }
        Some(Pattern::Object { members, has_rest })
    }

    /// Takes a string with its quotes.
    fn string(&mut self) -> Option<&'a str> {
        let inner = self.rest.strip_prefix('"')?;
        let mut is_escaped = false;
        for (at, letter) in inner.char_indices() {
            match letter {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '"' => {
                    let (string, rest) = self.rest.split_at(at + 2);
                    self.rest = rest;
                    return Some(string);
                }
                _ => {}
            }
        }
        None
    }

    /// Takes a number, a boolean or null.
    fn bare(&mut self) -> Option<&'a str> {
        let end = self.rest.find([',', ']', '}', ' ']);
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        let is_json = serde_json::from_str::<serde_json::Value>(word).is_ok();
        is_json.then_some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_patterns_are_one_line() {
        for (pattern, expected) in [
            (
                r#"{"a": [1, -2.5e3, null]}"#,
                r#"{ "a": [1, -2.5e3, null] }"#,
            ),
            ("{}", "{}"),
            ("{…}", "{ /* … */ }"),
            (r#"{"a": …, "b": true}"#, r#"{ "b": true /* … */ }"#),
            (
                r#"{"a": [{"b": "…"}, …]}"#,
                r#"{ "a": [{ "b": "…" } /* … */] }"#,
            ),
            (
                r#"{"a": "\"} $workspace/x"}"#,
                r#"{ "a": "\"} /home/ada/loom/x" }"#,
            ),
            (
                r#"{"a": "$A, $, $strange"}"#,
                r#"{ "a": "$A, $, strange" }"#,
            ),
        ] {
            let parsed = Pattern::parse(pattern).expect(pattern);
            assert_eq!(parsed.layout(), expected);
        }
    }

    #[test]
    fn long_patterns_are_broken_at_the_outermost_level() {
        let long = "x".repeat(40);
        let text = format!(r#"{{"a": {{"b": "{long}", "c": ["{long}"], …}}, "d": 1, …}}"#);
        let parsed = Pattern::parse(&text).expect("a pattern");
        assert_eq!(
            parsed.layout(),
            format!(
                "{{\n  \"a\": {{\n    \"b\": \"{long}\",\n    \"c\": [\"{long}\"]\n    /* … */\n  \
                 }},\n  \"d\": 1\n  /* … */\n}}"
            )
        );
    }

    #[test]
    fn other_text_is_no_pattern() {
        for text in [
            "", "raw {}", "{", "{\"a\"}", "[1 2]", "{} {}", "nothing", "\"open",
        ] {
            assert!(Pattern::parse(text).is_none(), "{text}");
        }
    }
}
