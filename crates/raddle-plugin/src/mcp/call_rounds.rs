//! Rounds of an MCP call: a server that requires input of the user gets the call again afterwards.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ElicitRequestParams, ErrorData, InputRequiredResult,
};
use rmcp::{Peer, RoleClient, ServiceError};
use tokio::time::sleep;

use super::call::{Call, CallError, OpenCalls};
use super::elicitation::CallElicitations;

/// Limit: times that an MCP call is sent because its server requires input; beyond it, the call
/// fails.
const ROUNDS_MAX: u32 = 10;

/// Pause before a call is sent again that required no input, doubled each time.
const PAUSE: Duration = Duration::from_millis(100);

/// Code of the error with which a server requires that the user visits pages before a call.
const PAGES_REQUIRED: i32 = -32042;

impl Call {
    /// Sends the call, asks the user for the input that it requires, and waits for its result. The
    /// time in which the user is asked does not count for the timeout.
    pub(crate) async fn send(
        mut self,
        peer: &Peer<RoleClient>,
        calls: &Arc<OpenCalls>,
        mut report: impl FnMut(String),
    ) -> Result<CallToolResult, CallError> {
        let elicitations = self.elicitations.clone();
        let deadline = elicitations.timeout(self.timeout);
        tokio::pin!(deadline);
        let mut params = CallToolRequestParams::new(self.tool.clone());
        params.arguments = self.arguments.take();
        for round in 0..ROUNDS_MAX {
            let sending =
                self.send_once(params.clone(), peer, calls, &mut report, deadline.as_mut());
            let required = match sending.await {
                Err(error) => RequiredInput::of(error)?,
                result => return result,
            };
            let pause = PAUSE * 2_u32.pow(round);
            tokio::select! {
                biased;
                supplied = required.supply(&elicitations, &mut params, pause) => supplied?,
                () = &mut self.stopped => return Err(CallError::Stopped),
                () = deadline.as_mut() => return Err(CallError::TimedOut(self.timeout)),
            }
        }
        Err(CallError::TooManyRounds(ROUNDS_MAX))
    }
}

/// Input that a server requires before it gives a result.
#[derive(Debug)]
enum RequiredInput {
    /// Answers, which are sent with the call.
    Answers(InputRequiredResult),
    /// Pages to visit, and the error of the call without that.
    Pages(Vec<ElicitRequestParams>, ErrorData),
}

impl RequiredInput {
    /// Returns the input that an error requires, or the error itself.
    fn of(error: CallError) -> Result<Self, CallError> {
        match error {
            CallError::InputRequired(required) => Ok(Self::Answers(*required)),
            CallError::Service(ServiceError::McpError(error)) => match pages(&error) {
                Some(pages) => Ok(Self::Pages(pages, error)),
                None => Err(ServiceError::McpError(error).into()),
            },
            error => Err(error),
        }
    }

    /// Asks the user, and adds the answers to the call.
    async fn supply(
        self,
        elicitations: &CallElicitations,
        params: &mut CallToolRequestParams,
        pause: Duration,
    ) -> Result<(), CallError> {
        match self {
            Self::Answers(required) => {
                let inputs = required.input_requests.unwrap_or_default();
                // Without input, the server wants the call later.
                if inputs.is_empty() {
                    sleep(pause).await;
                }
                let responses = elicitations.answer(inputs).await?;
                params.input_responses = (!responses.is_empty()).then_some(responses);
                params.request_state = required.request_state;
            }
            Self::Pages(pages, error) => {
                if !elicitations.visit(pages).await {
                    return Err(ServiceError::McpError(error).into());
                }
            }
        }
        Ok(())
    }
}

/// Returns the pages that an error requires the user to visit.
fn pages(error: &ErrorData) -> Option<Vec<ElicitRequestParams>> {
    let data = error.data.as_ref();
    let data = data.filter(|_| error.code.0 == PAGES_REQUIRED)?;
    let questions = data.get("elicitations")?.clone();
    let questions: Vec<ElicitRequestParams> = serde_json::from_value(questions).ok()?;
    let is_page =
        |it: &ElicitRequestParams| matches!(it, ElicitRequestParams::UrlElicitationParams { .. });
    (!questions.is_empty() && questions.iter().all(is_page)).then_some(questions)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_may_require_pages() {
        let page =
            json!({"mode": "url", "message": "m", "url": "https://a.org/", "elicitationId": "e"});
        let schema = json!({"type": "object", "properties": {}});
        let form = json!({"mode": "form", "message": "m", "requestedSchema": schema});
        for (code, data, expected) in [
            (
                PAGES_REQUIRED,
                json!({"elicitations": [page, page]}),
                Some(2),
            ),
            (PAGES_REQUIRED, json!({"elicitations": [page, form]}), None),
            (PAGES_REQUIRED, json!({"elicitations": []}), None),
            (PAGES_REQUIRED, json!({"elicitations": "page"}), None),
            (PAGES_REQUIRED, json!(null), None),
            (-32000, json!({"elicitations": [page]}), None),
        ] {
            let error = json!({"code": code, "message": "m", "data": data});
            let error: ErrorData = serde_json::from_value(error).expect("an error");
            let found = pages(&error).map(|it| it.len());
            assert_eq!(found, expected, "{code} {data}");
        }
    }
}
