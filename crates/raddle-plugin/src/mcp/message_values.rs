//! The limit of values in a message of an MCP server, over stdio or HTTP.

use raddle_rpc::{Inbound, code, marks};
use serde_json::json;

/// A message with more values than are parsed.
#[derive(Debug, thiserror::Error)]
#[error("the message has more than {} values", marks::VALUES_MAX)]
pub(crate) struct TooManyValues {
    /// An error in its place, if it is a response. Other messages are dropped.
    pub(super) replacement: Option<String>,
}

/// Checks that a message may be parsed. A value takes many times its text once it is parsed.
pub(super) fn check_values(message: &[u8]) -> Result<(), TooManyValues> {
    if message.len() <= marks::VALUES_MAX || marks::values(message).is_some() {
        return Ok(());
    }
    let replacement = match raddle_rpc::parse(message) {
        Ok(Inbound::Response(response)) => {
            let text = format!(
                "the server's response has more than {} values; call the tool for less",
                marks::VALUES_MAX
            );
            let error = json!({"code": code::INVALID_REQUEST, "message": text});
            let replacement = json!({"jsonrpc": "2.0", "id": response.id, "error": error});
            Some(replacement.to_string())
        }
        _ => None,
    };
    Err(TooManyValues { replacement })
}

#[cfg(test)]
mod tests {
    use rmcp::model::ServerJsonRpcMessage;
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_response_with_too_many_values_becomes_an_error_of_its_request() {
        let zeros = "0,".repeat(marks::VALUES_MAX);
        for id in ["7", "\"a\""] {
            let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"a":[{zeros}0]}}}}"#);
            let error = check_values(message.as_bytes()).expect_err("too many values");
            let text = error.replacement.expect("an error");
            let error: ServerJsonRpcMessage = serde_json::from_str(&text).expect("a message");
            assert!(matches!(error, ServerJsonRpcMessage::Error(_)), "{text}");
            let error: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(error["id"].to_string(), id);
        }
        let long = "0,".repeat(marks::VALUES_MAX);
        for (message, is_accepted) in [
            (
                format!(r#"{{"jsonrpc":"2.0","id":7,"result":"{long}"}}"#),
                true,
            ),
            (
                format!(r#"{{"jsonrpc":"2.0","method":"a","params":[{long}0]}}"#),
                false,
            ),
            (format!("[{long}0]"), false),
            (format!("[{long}0"), false),
        ] {
            let checked = check_values(message.as_bytes()).map_err(|it| it.replacement);
            assert_eq!(checked, if is_accepted { Ok(()) } else { Err(None) });
        }
    }
}
