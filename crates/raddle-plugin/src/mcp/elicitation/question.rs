//! The question of an MCP server in the form in which clients receive it.

use raddle_console::is_plain;
use rmcp::model::ElicitRequestParams;
use serde_json::Value;

/// Limit: message of an MCP server's question; beyond it, the question is declined.
const MESSAGE_BYTES_MAX: usize = 4 << 10;

/// Limit: MCP server's question with its form, as JSON; beyond it, the question is declined.
const QUESTION_BYTES_MAX: usize = 32 << 10;

/// Reason why a question cannot be shown to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum QuestionError {
    #[error("its message has more than {MESSAGE_BYTES_MAX} bytes")]
    LongMessage,
    #[error("it has more than {QUESTION_BYTES_MAX} bytes")]
    TooLong,
    #[error("the name of a field has characters that cannot be shown")]
    BadName,
    #[error("its URL is no plain `https://` or `http://` address")]
    BadUrl,
    #[error("its kind is not known")]
    Unknown,
}

/// Returns the question as clients receive it, without the names of the thread and the server.
/// Its texts contain nothing that a terminal would execute.
pub(crate) fn question(params: &ElicitRequestParams) -> Result<Value, QuestionError> {
    let message = match params {
        ElicitRequestParams::FormElicitationParams { message, .. } => message,
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            if !is_web_address(url) {
                return Err(QuestionError::BadUrl);
            }
            message
        }
        _ => return Err(QuestionError::Unknown),
    };
    if message.len() > MESSAGE_BYTES_MAX {
        return Err(QuestionError::LongMessage);
    }
    let mut body = serde_json::to_value(params).map_err(|_| QuestionError::Unknown)?;
    if let Value::Object(members) = &mut body {
        // Metadata of the protocol, which clients do not read.
        members.insert("_meta".to_owned(), Value::Null);
    }
    if body.to_string().len() > QUESTION_BYTES_MAX {
        return Err(QuestionError::TooLong);
    }
    if !clean(&mut body) {
        return Err(QuestionError::BadName);
    }
    Ok(body)
}

/// Whether a URL is an address of a web page without characters that could hide a part of it.
fn is_web_address(url: &str) -> bool {
    let rest = url.strip_prefix("https://");
    let Some(rest) = rest.or_else(|| url.strip_prefix("http://")) else {
        return false;
    };
    // A part before `@` looks like the name of another host.
    let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    !host.contains('@') && url.bytes().all(|it| it.is_ascii_graphic())
}

/// Removes the characters from texts that move a cursor, change colours, reverse the direction of
/// text, or are invisible. Returns false if a name contains one: an answer repeats the names of
/// fields.
fn clean(value: &mut Value) -> bool {
    match value {
        Value::String(text) => {
            text.retain(is_plain);
            true
        }
        Value::Array(values) => values.iter_mut().all(clean),
        Value::Object(members) => {
            let is_plain_name = |name: &String| name.chars().all(is_plain);
            members.keys().all(is_plain_name) && members.values_mut().all(clean)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn params(value: &Value) -> ElicitRequestParams {
        serde_json::from_value(value.clone()).expect("params")
    }

    fn form(message: &str, properties: &Value) -> Value {
        json!({
            "mode": "form", "message": message,
            "requestedSchema": {"type": "object", "properties": properties},
        })
    }

    fn url(url: &str) -> Value {
        json!({"mode": "url", "message": "m", "url": url, "elicitationId": "e"})
    }

    #[test]
    fn a_question_is_shown_without_escapes_or_is_declined() {
        let field = json!({"a": {"type": "string", "title": "A\u{1b}[2J"}});
        let clean_field = json!({"a": {"type": "string", "title": "A[2J"}});
        let long = "x".repeat(MESSAGE_BYTES_MAX + 1);
        let many: serde_json::Map<String, Value> = (0..2000)
            .map(|it| (format!("field{it}"), json!({"type": "boolean"})))
            .collect();
        let without_mode = json!({
            "message": "m", "requestedSchema": {"type": "object", "properties": {}},
        });
        for (sent, expected) in [
            (
                form("a\u{1b}[31m\u{202e}b\n", &field),
                Ok(form("a[31mb\n", &clean_field)),
            ),
            (
                form("pay\u{200b}\u{2060}load\u{feff}\u{e0041}", &json!({})),
                Ok(form("payload", &json!({}))),
            ),
            (without_mode, Ok(form("m", &json!({})))),
            (form(&long, &json!({})), Err(QuestionError::LongMessage)),
            (form("m", &many.into()), Err(QuestionError::TooLong)),
            (
                form("m", &json!({"a\u{7}": {"type": "boolean"}})),
                Err(QuestionError::BadName),
            ),
            (
                form("m", &json!({"a\u{200d}": {"type": "boolean"}})),
                Err(QuestionError::BadName),
            ),
            (
                url("https://example.com/?a=b"),
                Ok(url("https://example.com/?a=b")),
            ),
            (url("http://localhost:1/"), Ok(url("http://localhost:1/"))),
            (url("javascript:alert(1)"), Err(QuestionError::BadUrl)),
            (url("https://a\u{202e}b/"), Err(QuestionError::BadUrl)),
            (url("https://a\u{200b}b/"), Err(QuestionError::BadUrl)),
            (
                url("https://github.com%2Flogin@evil.example/"),
                Err(QuestionError::BadUrl),
            ),
            (url("https://a@b.example"), Err(QuestionError::BadUrl)),
            (url("https://a.example/@b"), Ok(url("https://a.example/@b"))),
            (url("file:///etc/passwd"), Err(QuestionError::BadUrl)),
        ] {
            let expected = expected.map(|mut it| {
                it["_meta"] = Value::Null;
                it
            });
            assert_eq!(question(&params(&sent)), expected, "{sent}");
        }
    }
}
