//! Questions of MCP servers: a form that is filled in line by line, or a page to visit.

use raddle_protocol::McpServerElicitationRequestParams as Elicitation;
use serde_json::{Map, Value, json};

use super::quote::Quote;

const FORM: &str = "fill in the form? [y/n] ";
const PAGE: &str = "agree to visit it? Open it yourself [y/n] ";
const UNKNOWN: &str = "it cannot be answered here: [n] declines it ";
const FIELD: &str = "your answer: ";
const OPTIONAL_FIELD: &str = "your answer, or - for none: ";

/// The input that leaves out an optional field.
const NONE: &str = "-";

/// The answer so far.
#[derive(Debug, Default)]
pub(crate) struct FormProgress {
    /// Whether the user wants to fill in the form.
    is_begun: bool,
    /// Number of fields that were asked.
    asked: usize,
    content: Map<String, Value>,
}

/// One field of a form.
#[derive(Clone, Debug, PartialEq)]
struct Field {
    name: String,
    title: String,
    kind: FieldKind,
    is_required: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum FieldKind {
    Text,
    Boolean,
    Integer,
    Number,
    /// One of these values, each with its title.
    One(Vec<(String, String)>),
    /// Any of these values, each with its title.
    Many(Vec<(String, String)>),
}

/// Summarises a question in a line.
pub(crate) fn about(question: &Elicitation) -> String {
    match question {
        Elicitation::Form(it) => {
            format!("the MCP server {} asks: {}", it.server_name, it.message)
        }
        Elicitation::Url(it) => format!(
            "the MCP server {} asks to visit {}: {}",
            it.server_name, it.url, it.message
        ),
        _ => "a question of an MCP server".to_owned(),
    }
}

/// Returns the question: words of ours, and then text of the server.
fn heading(question: &Elicitation) -> Vec<Quote> {
    let lead = |server: &str| format!("the MCP server {server} asks: ");
    match question {
        Elicitation::Form(it) => vec![Quote::new(lead(&it.server_name), &it.message)],
        Elicitation::Url(it) => vec![
            Quote::new(lead(&it.server_name), &it.message),
            Quote::new("  page: ", &it.url),
        ],
        _ => vec![Quote::new(about(question), "")],
    }
}

/// Returns the answer that declines a question.
pub(crate) fn declined() -> Value {
    json!({ "action": "decline", "content": null, "_meta": null })
}

fn accepted(content: Option<Value>) -> Value {
    json!({ "action": "accept", "content": content, "_meta": null })
}

impl FormProgress {
    /// Returns the lines to show, and the prompt below them.
    pub(crate) fn view(&self, question: &Elicitation) -> (Vec<Quote>, &'static str) {
        if let Some(field) = self.field(question) {
            let mut lines = vec![Quote::new("  field: ", &field.title)];
            lines.extend(
                field
                    .options()
                    .iter()
                    .enumerate()
                    .map(|(index, (_, title))| Quote::new(format!("  {}. ", index + 1), title)),
            );
            let hint = match field.kind {
                FieldKind::Boolean => "y or n",
                FieldKind::Integer => "a whole number",
                FieldKind::Number => "a number",
                FieldKind::Many(_) => "numbers of answers, separated by commas",
                FieldKind::One(_) => "the number of an answer",
                FieldKind::Text => "",
            };
            if !hint.is_empty() {
                lines.push(Quote::new(format!("  ({hint})"), ""));
            }
            return (
                lines,
                if field.is_required {
                    FIELD
                } else {
                    OPTIONAL_FIELD
                },
            );
        }
        let mut lines = heading(question);
        let prompt = match (question, fields(question)) {
            (Elicitation::Url(_), _) => PAGE,
            (Elicitation::Form(_), Some(fields)) => {
                let titles = fields.iter().map(|it| Quote::new("  field: ", &it.title));
                lines.extend(titles);
                FORM
            }
            _ => UNKNOWN,
        };
        (lines, prompt)
    }

    /// Handles a line. Returns the answer once it is complete.
    pub(crate) fn handle_line(&mut self, question: &Elicitation, line: &str) -> Option<Value> {
        if let Some(field) = self.field(question) {
            if line == NONE && !field.is_required {
                self.asked += 1;
            } else {
                let value = field.read(line)?;
                self.content.insert(field.name, value);
                self.asked += 1;
            }
            return self.complete(question);
        }
        let is_yes = match line.to_lowercase().as_str() {
            "y" | "yes" => true,
            "n" | "no" => false,
            _ => return None,
        };
        match (is_yes, question, fields(question)) {
            (false, ..) => Some(declined()),
            (true, Elicitation::Url(_), _) => Some(accepted(None)),
            (true, Elicitation::Form(_), Some(_)) => {
                self.is_begun = true;
                self.complete(question)
            }
            (true, ..) => None,
        }
    }

    /// Returns the answer, if no field is left to ask.
    fn complete(&mut self, question: &Elicitation) -> Option<Value> {
        let is_complete = self.field(question).is_none();
        is_complete.then(|| accepted(Some(Value::Object(std::mem::take(&mut self.content)))))
    }

    /// Returns the field to ask for now.
    fn field(&self, question: &Elicitation) -> Option<Field> {
        let fields = fields(question).filter(|_| self.is_begun)?;
        fields.into_iter().nth(self.asked)
    }
}

impl Field {
    fn options(&self) -> &[(String, String)] {
        match &self.kind {
            FieldKind::One(options) | FieldKind::Many(options) => options,
            _ => &[],
        }
    }

    /// Returns the value that a line gives the field; `None` if it is none.
    fn read(&self, line: &str) -> Option<Value> {
        match &self.kind {
            FieldKind::Text => Some(line.into()),
            FieldKind::Boolean => match line.to_lowercase().as_str() {
                "y" | "yes" | "true" => Some(true.into()),
                "n" | "no" | "false" => Some(false.into()),
                _ => None,
            },
            FieldKind::Integer => line.parse::<i64>().ok().map(Value::from),
            FieldKind::Number => {
                let number = line.parse::<f64>().ok().filter(|it| it.is_finite());
                number.map(Value::from)
            }
            FieldKind::One(_) => self.option(line).map(Value::from),
            FieldKind::Many(_) => {
                let chosen = line.split(',').map(|it| self.option(it.trim()));
                let chosen: Option<Vec<&str>> = chosen.collect();
                chosen.map(Value::from)
            }
        }
    }

    /// Returns the value of the option with this number, value or title.
    fn option(&self, line: &str) -> Option<&str> {
        let options = self.options();
        let number = line.parse::<usize>().ok().and_then(|it| it.checked_sub(1));
        let numbered = number.and_then(|it| options.get(it));
        let named = || {
            let is_named = |it: &&(String, String)| it.0 == line || it.1 == line;
            options.iter().find(is_named)
        };
        numbered.or_else(named).map(|(value, _)| value.as_str())
    }
}

/// Returns the fields of a form; `None` if one of them cannot be filled in on a terminal.
fn fields(question: &Elicitation) -> Option<Vec<Field>> {
    let Elicitation::Form(form) = question else {
        return None;
    };
    let schema = &form.requested_schema;
    let required: Vec<&str> = texts(&schema["required"]).collect();
    let Some(properties) = schema["properties"].as_object() else {
        return Some(Vec::new());
    };
    let fields = properties.iter().map(|(name, schema)| {
        Some(Field {
            name: name.clone(),
            title: title(name, schema),
            kind: FieldKind::of(schema)?,
            is_required: required.contains(&name.as_str()),
        })
    });
    fields.collect()
}

fn title(name: &str, schema: &Value) -> String {
    let title = schema["title"].as_str().unwrap_or(name);
    match schema["description"].as_str() {
        Some(description) => format!("{title}: {description}"),
        None => title.to_owned(),
    }
}

impl FieldKind {
    fn of(schema: &Value) -> Option<Self> {
        match schema["type"].as_str()? {
            "string" => Some(options(schema).map_or(Self::Text, Self::One)),
            "boolean" => Some(Self::Boolean),
            "integer" => Some(Self::Integer),
            "number" => Some(Self::Number),
            "array" => options(&schema["items"]).map(Self::Many),
            _ => None,
        }
    }
}

/// Returns the values that a schema allows, each with its title.
fn options(schema: &Value) -> Option<Vec<(String, String)>> {
    let titled = ["oneOf", "anyOf"]
        .iter()
        .find_map(|it| schema[it].as_array());
    if let Some(titled) = titled {
        let option = |it: &Value| {
            let value = it["const"].as_str()?;
            let title = it["title"].as_str().unwrap_or(value);
            Some((value.to_owned(), title.to_owned()))
        };
        return titled.iter().map(option).collect();
    }
    schema["enum"].as_array()?;
    let titles: Vec<&str> = texts(&schema["enumNames"]).collect();
    let values = texts(&schema["enum"]).enumerate();
    let options = values.map(|(index, value)| {
        let title = titles.get(index).copied().unwrap_or(value);
        (value.to_owned(), title.to_owned())
    });
    Some(options.collect())
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(properties: &Value, required: &[&str]) -> Elicitation {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        let params = json!({
            "threadId": "019a0000-0000-7000-8000-000000000001", "turnId": "t", "serverName": "s",
            "mode": "form", "message": "which?", "requestedSchema": schema,
        });
        serde_json::from_value(params).expect("a question")
    }

    fn page() -> Elicitation {
        let params = json!({
            "threadId": "019a0000-0000-7000-8000-000000000001", "turnId": "t", "serverName": "s",
            "mode": "url", "message": "log in", "url": "https://example.com/", "elicitationId": "e",
        });
        serde_json::from_value(params).expect("a question")
    }

    #[test]
    fn lines_answer_a_question() {
        let many = json!({"type": "array", "items": {"type": "string", "enum": ["x", "y"]}});
        let every_kind = json!({
            "a": {"type": "string"}, "b": {"type": "boolean"}, "c": {"type": "integer"},
            "d": {"type": "string", "oneOf": [{"const": "x", "title": "Ex"}]}, "e": many,
        });
        let lines = &["y", "text", "maybe", "n", "1.5", "7", "2", "Ex", "1, y"][..];
        let content = json!({"a": "text", "b": false, "c": 7, "d": "x", "e": ["x", "y"]});
        let optional = json!({"a": {"type": "string"}});
        let odd = json!({"a": {"type": "object"}});
        for (question, lines, expected) in [
            (
                form(&every_kind, &["a"]),
                lines,
                Some(json!({"action": "accept", "content": content, "_meta": null})),
            ),
            (
                form(&optional, &[]),
                &["y", "-"],
                Some(json!({"action": "accept", "content": {}, "_meta": null})),
            ),
            (
                form(&optional, &["a"]),
                &["y", "-"],
                Some(json!({"action": "accept", "content": {"a": "-"}, "_meta": null})),
            ),
            (
                form(&json!({}), &[]),
                &["yes"],
                Some(json!({"action": "accept", "content": {}, "_meta": null})),
            ),
            (form(&optional, &["a"]), &["n"], Some(declined())),
            (form(&odd, &[]), &["y", "y"], None),
            (form(&odd, &[]), &["y", "n"], Some(declined())),
            (
                page(),
                &["y"],
                Some(json!({"action": "accept", "content": null, "_meta": null})),
            ),
            (page(), &["perhaps", "n"], Some(declined())),
        ] {
            let mut progress = FormProgress::default();
            let (last, first) = lines.split_last().expect("lines");
            for line in first {
                assert_eq!(progress.handle_line(&question, line), None, "{line}");
            }
            assert_eq!(progress.handle_line(&question, last), expected, "{lines:?}");
        }
    }
}
