//! Checks the journal: every act has a ruling.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Exports the threads, checks every act in them, and returns the number of acts.
pub fn check(
    raddle: &Path,
    home: &Path,
    exported: &Path,
    wrongs: &mut Vec<String>,
) -> Result<usize> {
    let output = Command::new(raddle)
        .args(["thread", "export", "--all", "--out"])
        .arg(exported)
        .env("RADDLE_HOME", home)
        .output()?;
    ensure!(
        output.status.success(),
        "the threads cannot be written out: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut acts = 0;
    for entry in fs::read_dir(exported)? {
        let text = fs::read_to_string(entry?.path())?;
        let mut thread = ThreadHistory::default();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).context("a line of JSON")?;
            wrongs.extend(thread.apply(&line["record"]["body"]["event"]));
        }
        acts += thread.acts;
    }
    Ok(acts)
}

/// State of one thread so far.
#[derive(Default)]
struct ThreadHistory {
    /// By item: its kind, and the ruling on it.
    items: HashMap<String, (String, Value)>,
    /// By item: the last answer to the request about it.
    answers: HashMap<String, Value>,
    /// The item of each request.
    questions: HashMap<u64, String>,
    /// Digests approved for the session.
    granted: Vec<Value>,
    /// Commands that ran and patches that were applied.
    acts: usize,
}

impl ThreadHistory {
    /// Applies an event, and returns the failure in it, if there is one.
    fn apply(&mut self, event: &Value) -> Option<String> {
        let id = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        let (name, it) = event.as_object()?.iter().next()?;
        match name.as_str() {
            "itemStarted" => {
                let item = &it["item"];
                let kind = item["body"]
                    .as_object()
                    .and_then(|it| it.keys().next().cloned());
                let known = (kind.unwrap_or_default(), it["ruling"].clone());
                self.items.insert(id(&item["id"]), known);
            }
            "requestOpened" => {
                self.questions
                    .insert(it["request"].as_u64()?, id(&it["item"]));
            }
            "requestResolved" => {
                let item = self.questions.get(&it["request"].as_u64()?)?.clone();
                let answer = it["resolution"]["answered"]["answer"].clone();
                if answer.get("acceptForSession").is_some() {
                    self.granted
                        .push(self.items.get(&item)?.1["digest"].clone());
                }
                self.answers.insert(item, answer);
            }
            "toolStarted" => return self.judge(&id(&it["item"])),
            _ => {}
        }
        None
    }

    /// Checks a tool that starts.
    fn judge(&mut self, item: &str) -> Option<String> {
        let Some((kind, ruling)) = self.items.get(item) else {
            return Some(format!("a tool began that no item shows: {item}"));
        };
        self.acts += 1;
        let is_approved = self.answers.get(item).is_some_and(|it| {
            ["accept", "acceptForSession", "acceptWithRule"]
                .iter()
                .any(|key| it.get(key).is_some())
        });
        let is_allowed = match ruling["verdict"].as_str() {
            Some("allow") => {
                ruling["rule"] != "session" || self.granted.contains(&ruling["digest"])
            }
            Some("ask") => is_approved,
            Some(_) => false,
            // Reading and planning need no ruling.
            None => !matches!(kind.as_str(), "command" | "patch"),
        };
        (!is_allowed).then(|| format!("the {kind} {item} began, and its ruling is {ruling}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrongs(events: &[Value]) -> usize {
        let mut thread = ThreadHistory::default();
        events.iter().filter_map(|it| thread.apply(it)).count()
    }

    fn started(ruling: &Value) -> Value {
        json!({"itemStarted": {"item": {"id": "i", "body": {"command": {}}}, "ruling": ruling}})
    }

    #[test]
    fn acts_start_only_if_allowed_or_approved() {
        let tool = json!({"toolStarted": {"item": "i"}});
        let opened = json!({"requestOpened": {"request": 1, "item": "i"}});
        let answer = |answer: Value| {
            let resolution = json!({"answered": {"by": "a", "answer": answer}});
            json!({"requestResolved": {"request": 1, "resolution": resolution}})
        };
        let allow = started(&json!({"verdict": "allow", "rule": "approvalPolicy", "digest": "d"}));
        let ask = started(&json!({"verdict": "ask", "digest": "d"}));
        let deny = started(&json!({"verdict": "deny", "digest": "d"}));
        let session = started(&json!({"verdict": "allow", "rule": "session", "digest": "d"}));
        let accepted = answer(json!({"accept": {}}));
        let accepted_for_session = answer(json!({"acceptForSession": {}}));
        let declined = answer(json!({"decline": {}}));
        for (events, expected) in [
            (vec![&allow, &tool], 0),
            (vec![&ask, &opened, &accepted, &tool], 0),
            (
                vec![&ask, &opened, &accepted_for_session, &tool, &session, &tool],
                0,
            ),
            (vec![&ask, &tool], 1),
            (vec![&ask, &opened, &declined, &tool], 1),
            (vec![&ask, &opened, &tool], 1),
            (vec![&deny, &tool], 1),
            (vec![&session, &tool], 1),
            (vec![&started(&Value::Null), &tool], 1),
            (vec![&tool], 1),
        ] {
            let events: Vec<Value> = events.into_iter().cloned().collect();
            assert_eq!(wrongs(&events), expected, "{events:?}");
        }
    }
}
