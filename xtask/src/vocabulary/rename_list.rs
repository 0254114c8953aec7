//! The rename list: words that identifiers must not contain, and their replacements.

use anyhow::{Context, Result, bail};
use toml::{Table, Value};

use crate::repository::Tree;

pub const FILE: &str = "xtask/rename-list.toml";

pub struct RenameList {
    pub types: RuleTable,
    /// Names after `as`.
    pub aliases: RuleTable,
    /// Whole identifiers.
    pub names: RuleTable,
    /// Words of identifiers, in lower case.
    pub parts: RuleTable,
    /// Names of files without `.rs`.
    pub modules: RuleTable,
    pub exceptions: Vec<Exception>,
}

pub struct WordRule {
    pub word: String,
    pub instead: String,
    /// Prefixes of the only paths to which the rule applies; none means all.
    only: Vec<String>,
    /// Prefixes of paths to which it does not apply.
    except: Vec<String>,
}

/// Identifiers of a file that may stay.
pub struct Exception {
    pub name: String,
    pub path: String,
    /// Number of uses.
    pub count: usize,
}

/// Rules by the length of their words.
pub struct RuleTable(Vec<Vec<WordRule>>);

impl RenameList {
    pub fn read(tree: &Tree) -> Result<Self> {
        let Some(text) = tree.text(FILE) else {
            bail!("{FILE} is missing");
        };
        Self::parse(text).with_context(|| format!("{FILE} is no rename list"))
    }

    fn parse(text: &str) -> Result<Self> {
        let list: Table = text.parse()?;
        let table = |name: &str| {
            let rows = list.get(name).and_then(Value::as_table);
            let rows = rows.with_context(|| format!("there is no table `{name}`"))?;
            RuleTable::parse(rows).with_context(|| format!("table `{name}`"))
        };
        let exceptions = list.get("exception").and_then(Value::as_array);
        let exceptions = exceptions.into_iter().flatten();
        Ok(Self {
            types: table("types")?,
            aliases: table("aliases")?,
            names: table("names")?,
            parts: table("parts")?,
            modules: table("modules")?,
            exceptions: exceptions.map(Exception::parse).collect::<Result<_>>()?,
        })
    }
}

impl RuleTable {
    fn parse(rows: &Table) -> Result<Self> {
        let mut by_length: Vec<Vec<WordRule>> = Vec::new();
        for (word, row) in rows {
            let rule = WordRule::parse(word, row).with_context(|| format!("word `{word}`"))?;
            if by_length.len() <= word.len() {
                by_length.resize_with(word.len() + 1, Vec::new);
            }
            by_length[word.len()].push(rule);
        }
        Ok(Self(by_length))
    }

    /// Returns the rule of a word, in any case.
    pub fn find(&self, word: &str) -> Option<&WordRule> {
        let first = word.as_bytes().first()?.to_ascii_lowercase();
        let rules = self.0.get(word.len())?;
        // The first letters are compared separately, because most words differ in them.
        rules.iter().find(|it| {
            it.word.as_bytes()[0].to_ascii_lowercase() == first
                && it.word.eq_ignore_ascii_case(word)
        })
    }

    /// Returns the rule of a word in exactly this spelling.
    pub fn find_exact(&self, word: &str) -> Option<&WordRule> {
        self.find(word).filter(|it| it.word == word)
    }
}

impl WordRule {
    fn parse(word: &str, row: &Value) -> Result<Self> {
        if word.is_empty() {
            bail!("it is empty");
        }
        let mut rule = Self {
            word: word.to_owned(),
            instead: String::new(),
            only: Vec::new(),
            except: Vec::new(),
        };
        match row {
            Value::String(instead) => rule.instead.clone_from(instead),
            Value::Table(members) => {
                for (name, value) in members {
                    match name.as_str() {
                        "instead" => rule.instead = string(value)?,
                        "only" => rule.only = strings(value)?,
                        "except" => rule.except = strings(value)?,
                        _ => bail!("`{name}` is none of `instead`, `only`, `except`"),
                    }
                }
            }
            _ => bail!("it has no replacement"),
        }
        if rule.instead.is_empty() {
            bail!("it has no replacement");
        }
        Ok(rule)
    }

    pub fn applies_to(&self, path: &str) -> bool {
        let is_below = |it: &String| path.starts_with(it.as_str());
        let is_included = self.only.is_empty() || self.only.iter().any(is_below);
        is_included && !self.except.iter().any(is_below)
    }
}

impl Exception {
    fn parse(row: &Value) -> Result<Self> {
        // Not used, but every exception must have one.
        string(member(row, "reason")?)?;
        let count = member(row, "count")?.as_integer();
        let count = count.and_then(|it| usize::try_from(it).ok());
        Ok(Self {
            name: string(member(row, "name")?)?,
            path: string(member(row, "path")?)?,
            count: count.context("`count` is no whole number")?,
        })
    }
}

fn member<'a>(row: &'a Value, name: &str) -> Result<&'a Value> {
    let value = row.get(name);
    value.with_context(|| format!("an exception has no `{name}`: {row}"))
}

fn string(value: &Value) -> Result<String> {
    let text = value.as_str().filter(|it| !it.is_empty());
    let text = text.with_context(|| format!("{value} is no text"))?;
    Ok(text.to_owned())
}

fn strings(value: &Value) -> Result<Vec<String>> {
    let values = value.as_array();
    let values = values.with_context(|| format!("{value} is no list"))?;
    values.iter().map(string).collect()
}
