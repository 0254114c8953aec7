//! Questions of MCP servers, passed on to the client.

use raddle_console::sanitize;
use raddle_plugin::mcp_server::CallContext;
use raddle_protocol::{
    McpServerElicitationAction, McpServerElicitationRequestParams,
    McpServerElicitationRequestResponse,
};
use serde_json::Value;

/// Shows the form of an MCP server to the client's user, and returns the answer. `None` if the
/// client cannot answer: it shows no forms, or the server asks to visit a page.
pub(crate) async fn ask(
    context: &CallContext,
    question: &McpServerElicitationRequestParams,
) -> Option<McpServerElicitationRequestResponse> {
    let McpServerElicitationRequestParams::Form(form) = question else {
        return None;
    };
    let (server, message) = (&form.server_name, &form.message);
    let message = sanitize(&format!("The MCP server {server} asks:\n\n{message}"));
    let result = context.pass_on(&message, &form.requested_schema).await;
    response(&result?)
}

/// Reads the result of `elicitation/create`.
fn response(result: &Value) -> Option<McpServerElicitationRequestResponse> {
    let (action, content) = match result["action"].as_str()? {
        "accept" => {
            let content = result.get("content").cloned();
            (McpServerElicitationAction::Accept, content)
        }
        "decline" => (McpServerElicitationAction::Decline, None),
        "cancel" => (McpServerElicitationAction::Cancel, None),
        _ => return None,
    };
    Some(McpServerElicitationRequestResponse {
        action,
        content,
        meta: None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_an_accepted_form_has_content() {
        for (result, expected) in [
            (
                json!({ "action": "accept", "content": { "colour": "madder", "count": 2 } }),
                Some(json!({ "action": "accept", "content": { "colour": "madder", "count": 2 } })),
            ),
            (
                json!({ "action": "decline", "content": { "colour": "madder" } }),
                Some(json!({ "action": "decline", "content": null })),
            ),
            (
                json!({ "action": "cancel" }),
                Some(json!({ "action": "cancel", "content": null })),
            ),
            (json!({ "action": "other" }), None),
            (json!({ "decision": "approved" }), None),
            (json!({}), None),
        ] {
            let answer = response(&result).map(|it| serde_json::to_value(it).expect("JSON"));
            let members = |it: &Value| (it["action"].clone(), it["content"].clone());
            assert_eq!(
                answer.as_ref().map(members),
                expected.as_ref().map(members),
                "{result}"
            );
        }
    }
}
