//! Patterns of paths, hosts and names in rules.

use std::fmt;

/// Paths that a rule matches: a path in which `*` and `?` match within one name and `**` matches
/// any number of names. Everything below a match matches too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    /// Path components, from the root on.
    names: Vec<String>,
}

/// Reason why a pattern is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The path is not absolute.
    #[error("a path in a rule begins with `/` or `**/`, and `{0}` does not")]
    NotAbsolute(String),
    /// The path contains `..`.
    #[error("a path in a rule has no `..`, and `{0}` does; write the folder that is meant")]
    GoesUp(String),
    /// The text is not a host.
    #[error(
        "`{0}` is no host; write a name, an address, `*.` before a name for all below it, or `*` for all"
    )]
    NoHost(String),
}

impl PathPattern {
    /// Parses a pattern of paths.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        if !text.starts_with('/') && text != "**" && !text.starts_with("**/") {
            return Err(PatternError::NotAbsolute(text.to_owned()));
        }
        let names: Vec<String> = names(text).map(str::to_owned).collect();
        if names.iter().any(|name| name == "..") {
            return Err(PatternError::GoesUp(text.to_owned()));
        }
        Ok(Self { names })
    }

    /// Whether the pattern matches a path or a folder above it.
    pub fn fits(&self, path: &str) -> bool {
        let mut resolved: Vec<&str> = Vec::new();
        for name in names(path) {
            match name {
                ".." => drop(resolved.pop()),
                name => resolved.push(name),
            }
        }
        names_fit(&self.names, &resolved)
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.names.first().is_none_or(|name| name != "**") {
            f.write_str("/")?;
        }
        f.write_str(&self.names.join("/"))
    }
}

/// Hosts that a rule matches: one, all below one, or all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern(String);

impl HostPattern {
    /// Parses a pattern of hosts.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let host = bare(text);
        let name = host.strip_prefix("*.").unwrap_or(&host);
        let is_letter = |it: char| it.is_alphanumeric() || "-_.:".contains(it);
        if text != "*" && (name.is_empty() || !name.chars().all(is_letter)) {
            return Err(PatternError::NoHost(text.to_owned()));
        }
        Ok(Self(host))
    }

    /// Whether the pattern matches a host.
    pub fn fits(&self, host: &str) -> bool {
        let host = bare(host);
        match self.0.strip_prefix('*') {
            Some(below) => host.len() > below.len() && host.ends_with(below),
            None => host == self.0,
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a pattern with `*` and `?` matches a name.
pub(super) fn name_fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut pos) = (0, 0);
    // Positions to resume from if the match after the last star fails.
    let mut star: Option<(usize, usize)> = None;
    while pos < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, pos));
                at += 1;
            }
            Some(letter) if *letter == '?' || *letter == name[pos] => {
                at += 1;
                pos += 1;
            }
            _ => match star {
                Some((starred, from)) => {
                    star = Some((starred, from + 1));
                    at = starred + 1;
                    pos = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|letter| *letter == '*')
}

/// Whether a pattern matches a path or a folder above it. It walks like an automaton, so that no
/// pattern takes long.
fn names_fit(pattern: &[String], path: &[&str]) -> bool {
    let mut reached = vec![false; pattern.len() + 1];
    reached[0] = true;
    skip_any(pattern, &mut reached);
    for name in path {
        if reached[pattern.len()] {
            return true;
        }
        let mut next = vec![false; pattern.len() + 1];
        for (at, component) in pattern.iter().enumerate() {
            if !reached[at] {
                continue;
            }
            if component == "**" {
                next[at] = true;
            } else if name_fits(component, name) {
                next[at + 1] = true;
            }
        }
        skip_any(pattern, &mut next);
        reached = next;
    }
    reached[pattern.len()]
}

/// Marks the positions after `**`, which may match no name at all.
fn skip_any(pattern: &[String], reached: &mut [bool]) {
    for (at, component) in pattern.iter().enumerate() {
        if reached[at] && component == "**" {
            reached[at + 1] = true;
        }
    }
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter(|name| !name.is_empty() && *name != ".")
}

/// Normalises a host for comparison.
fn bare(host: &str) -> String {
    let host = host.trim_start_matches('[').trim_end_matches(['.', ']']);
    host.to_ascii_lowercase()
}
