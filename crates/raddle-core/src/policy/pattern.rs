//! Patterns of paths, hosts and names in rules.

use std::fmt;

/// Which paths a rule is about: a path, in which `*` and `?` stand for anything within one name and `**` for
/// any number of names. What lies below is meant too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    /// Names from the root on.
    names: Vec<String>,
}

/// Why a pattern is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It does not say from where on.
    #[error("a path in a rule begins with `/` or `**/`, and `{0}` does not")]
    NotAbsolute(String),
    /// It goes up.
    #[error("a path in a rule has no `..`, and `{0}` does; write the folder that is meant")]
    GoesUp(String),
    /// It is no host.
    #[error(
        "`{0}` is no host; write a name, an address, `*.` before a name for all below it, or `*` for all"
    )]
    NoHost(String),
}

impl PathPattern {
    /// Reads a pattern.
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

    /// Whether a path is one of these or below one.
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

/// Which hosts a rule is about: one, all below one, or all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern(String);

impl HostPattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let host = bare(text);
        let name = host.strip_prefix("*.").unwrap_or(&host);
        let is_letter = |it: char| it.is_alphanumeric() || "-_.:".contains(it);
        if text != "*" && (name.is_empty() || !name.chars().all(is_letter)) {
            return Err(PatternError::NoHost(text.to_owned()));
        }
        Ok(Self(host))
    }

    /// Whether a host is one of these.
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

/// Whether a name is one of those that a pattern with `*` and `?` means.
pub(super) fn name_fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut pos) = (0, 0);
    // Where to go on if what was tried after the last star fails.
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

/// Which of the path's names the pattern can have come to; the same walk as that of an automaton, so that no
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
        for (at, wanted) in pattern.iter().enumerate() {
            if !reached[at] {
                continue;
            }
            if wanted == "**" {
                next[at] = true;
            } else if name_fits(wanted, name) {
                next[at + 1] = true;
            }
        }
        skip_any(pattern, &mut next);
        reached = next;
    }
    reached[pattern.len()]
}

/// `**` may stand for no name at all.
fn skip_any(pattern: &[String], reached: &mut [bool]) {
    for (at, wanted) in pattern.iter().enumerate() {
        if reached[at] && wanted == "**" {
            reached[at + 1] = true;
        }
    }
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/')
        .filter(|name| !name.is_empty() && *name != ".")
}

/// A host as it is compared.
fn bare(host: &str) -> String {
    let host = host.trim_start_matches('[').trim_end_matches(['.', ']']);
    host.to_ascii_lowercase()
}
