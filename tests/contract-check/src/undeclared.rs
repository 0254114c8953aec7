//! Methods, notifications and server requests of the reference that our tables do not declare.
//!
//! The page lists them, so that a name that Codex adds or removes is a difference from the page.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::Result;
use raddle_protocol::{METHODS, NOTIFICATIONS, SERVER_REQUESTS};

use crate::bundle::Bundle;
use crate::findings::Findings;

/// Groups of names as the page titles them, each with its union in the schema.
const GROUPS: [(&str, &str); 3] = [
    ("Methods", "ClientRequest"),
    ("Notifications", "ServerNotification"),
    ("Server requests", "ServerRequest"),
];

/// Undeclared names, in the order of [`GROUPS`].
#[derive(Debug, PartialEq, Eq)]
pub struct Undeclared {
    groups: [BTreeSet<String>; 3],
}

impl Undeclared {
    pub fn of(reference: &Bundle) -> Result<Self> {
        let declared = declared();
        let mut groups = <[BTreeSet<String>; 3]>::default();
        for (names, (_, union)) in groups.iter_mut().zip(GROUPS) {
            let undeclared = reference
                .methods(union)?
                .into_keys()
                .filter(|name| !declared.contains(name.as_str()));
            names.extend(undeclared);
        }
        Ok(Self { groups })
    }

    /// Returns the section of the page.
    pub fn section(&self) -> String {
        let mut text = String::from(
            "\
## Not declared

Codex has these, and Raddle does not declare them. The check fails if Codex adds or removes one.

",
        );
        for (names, (title, _)) in self.groups.iter().zip(GROUPS) {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            // Writing to a string cannot fail.
            let _ = writeln!(text, "- {title}: {}", names.join(", "));
        }
        text.push('\n');
        text
    }

    /// Adds a finding for each name that the page lacks, and for each that only the page has.
    pub fn compare(&self, page: &str, findings: &mut Findings) {
        let listed = Self::on_page(page);
        for (names, listed) in self.groups.iter().zip(&listed.groups) {
            for name in names.difference(listed) {
                findings.add("new in the reference", name);
            }
            for name in listed.difference(names) {
                findings.add("no longer in the reference, or declared now", name);
            }
        }
    }

    /// Reads the section of a page.
    fn on_page(page: &str) -> Self {
        let groups = GROUPS.map(|(title, _)| {
            let start = format!("- {title}: ");
            let line = page.lines().find_map(|line| line.strip_prefix(&start));
            let names = line.unwrap_or_default().split('`').skip(1).step_by(2);
            names.map(str::to_owned).collect()
        });
        Self { groups }
    }
}

fn declared() -> BTreeSet<&'static str> {
    let methods = METHODS.iter().map(|row| row.name);
    let notifications = NOTIFICATIONS.iter().map(|row| row.name);
    let server_requests = SERVER_REQUESTS.iter().map(|row| row.name);
    methods
        .chain(notifications)
        .chain(server_requests)
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn reference(methods: &[&str]) -> Bundle {
        let union = |names: &[&str]| {
            let arm = |name: &&str| json!({ "properties": { "method": { "enum": [name] } } });
            json!({ "oneOf": names.iter().map(arm).collect::<Vec<Value>>() })
        };
        Bundle {
            definitions: json!({
                "ClientRequest": union(methods),
                "ServerNotification": union(&["loom/moved", "turn/started"]),
                "ServerRequest": union(&[]),
            }),
        }
    }

    #[test]
    fn new_and_removed_names_are_reported() {
        let old = Undeclared::of(&reference(&["initialize", "loom/start"])).expect("a schema");
        let page = old.section();
        assert_eq!(Undeclared::on_page(&page), old);
        let mut findings = Findings::default();
        old.compare(&page, &mut findings);
        assert_eq!(findings.lines(), [""; 0]);

        let new = Undeclared::of(&reference(&["initialize", "loom/stop"])).expect("a schema");
        new.compare(&page, &mut findings);
        assert_eq!(
            findings.lines(),
            [
                "new in the reference: loom/stop",
                "no longer in the reference, or declared now: loom/start",
            ]
        );
    }
}
