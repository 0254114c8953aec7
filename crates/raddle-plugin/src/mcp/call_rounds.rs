//! Rounds of an MCP call: a server that requires input gets the call again, together with it.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, CallToolResult, InputRequests, InputResponses};
use rmcp::{Peer, RoleClient};
use tokio::time::sleep;

use super::call::{Call, CallError, OpenCalls};
use super::elicitation::CallElicitations;

/// Limit: times that an MCP call is sent because its server requires input; beyond it, the call
/// fails.
const ROUNDS_MAX: u32 = 10;

/// Pause before a call is sent again that required no input, doubled each time.
const PAUSE: Duration = Duration::from_millis(100);

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
                Err(CallError::InputRequired(required)) => *required,
                outcome => return outcome,
            };
            params.request_state = required.request_state;
            let inputs = required.input_requests.unwrap_or_default();
            let pause = PAUSE * 2_u32.pow(round);
            let responses = tokio::select! {
                biased;
                responses = responses(&elicitations, inputs, pause) => responses?,
                () = &mut self.stopped => return Err(CallError::Stopped),
                () = deadline.as_mut() => return Err(CallError::TimedOut(self.timeout)),
            };
            params.input_responses = (!responses.is_empty()).then_some(responses);
        }
        Err(CallError::TooManyRounds(ROUNDS_MAX))
    }
}

/// Asks the user for the required input. Without any, the server wants the call later.
async fn responses(
    elicitations: &CallElicitations,
    inputs: InputRequests,
    pause: Duration,
) -> Result<InputResponses, CallError> {
    if inputs.is_empty() {
        sleep(pause).await;
    }
    elicitations.answer(inputs).await
}
