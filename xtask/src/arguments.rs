//! Manual parser of the command line: a parser crate would cost more than it saves here.

use anyhow::{Context, Result, bail};

/// Remaining arguments of the command line. Each method removes the arguments that it returns.
pub struct Arguments(Vec<String>);

impl Arguments {
    pub fn new(words: impl Iterator<Item = String>) -> Self {
        Self(words.collect())
    }

    /// Returns whether this flag was given.
    pub fn flag(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|word| word != name);
        self.0.len() != before
    }

    /// Returns the value of `--name VALUE` or `--name=VALUE`.
    pub fn value(&mut self, name: &str) -> Result<Option<String>> {
        let prefix = format!("{name}=");
        for at in 0..self.0.len() {
            if let Some(value) = self.0[at].strip_prefix(&prefix) {
                let value = value.to_owned();
                self.0.remove(at);
                return Ok(Some(value));
            }
            if self.0[at] == name {
                self.0.remove(at);
                if at == self.0.len() {
                    bail!("{name} needs a value");
                }
                return Ok(Some(self.0.remove(at)));
            }
        }
        Ok(None)
    }

    /// Returns a value that is a whole number.
    pub fn number(&mut self, name: &str) -> Result<Option<u64>> {
        self.value(name)?
            .map(|value| {
                value
                    .parse()
                    .with_context(|| format!("{name} takes a whole number, not `{value}`"))
            })
            .transpose()
    }

    /// Returns the next argument that is not an option.
    pub fn word(&mut self) -> Option<String> {
        let at = self.0.iter().position(|word| !word.starts_with('-'))?;
        Some(self.0.remove(at))
    }

    /// Returns all remaining arguments; fails if one of them is an option, which is then unknown.
    pub fn words(self) -> Result<Vec<String>> {
        match self.0.iter().find(|word| word.starts_with('-')) {
            Some(option) => bail!("option `{option}` is not known here; see `cargo xtask --help`"),
            None => Ok(self.0),
        }
    }

    /// Fails if any argument remains.
    pub fn end(self) -> Result<()> {
        match self.words()?.first() {
            Some(word) => bail!("`{word}` is not expected here; see `cargo xtask --help`"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Arguments {
        Arguments::new(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_are_accepted_at_any_position() {
        let mut it = arguments("ci --only=a,b --list");
        assert!(it.flag("--list"));
        assert_eq!(it.value("--only").expect("a value").as_deref(), Some("a,b"));
        assert_eq!(it.word().as_deref(), Some("ci"));
        it.end().expect("nothing is left");
    }

    #[test]
    fn unknown_arguments_are_rejected() {
        assert!(arguments("--unheard-of").end().is_err());
        assert!(arguments("extra").end().is_err());
        assert!(arguments("--only").value("--only").is_err());
        assert!(arguments("--minutes ten").number("--minutes").is_err());
    }
}
