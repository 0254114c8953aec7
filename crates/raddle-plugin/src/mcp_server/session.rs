//! The conversation with one client: dispatch of its messages, and the shutdown.

use std::sync::Arc;
use std::time::Duration;

use raddle_rpc::{
    Close, Connection, ErrorObject, Frame, FrameError, Id, Inbound, InboundNotification,
    InboundRequest, code, parse,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::arguments::{self, ArgumentError};
use super::call::{self, CallConflict, CallReply, RunningCalls};
use super::peer::McpPeer;
use super::tool_list::{INSTRUCTIONS, tool_list};
use super::{CallContext, TurnReport, TurnRunner};

/// The revisions of MCP that are served, oldest first. Later ones have no `initialize`; their
/// clients fall back to it.
const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// Longest part of a client's name that the log contains.
const NAME_BYTES_MAX: usize = 256;

/// The time for running turns to end, and then for the last messages to be written.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(15);

/// Serves MCP until the client closes its end or `stop` resolves. Then it interrupts the turns that
/// still run.
pub async fn serve<R: TurnRunner>(
    mut connection: Connection,
    runner: R,
    stop: impl Future<Output = ()>,
) {
    let outgoing = connection.outgoing.clone();
    let mut session = Session {
        runner: Arc::new(runner),
        peer: Arc::new(McpPeer::new(outgoing.clone())),
        running: Arc::default(),
        tasks: JoinSet::new(),
        is_initialized: false,
    };
    tokio::pin!(stop);
    loop {
        let next = async {
            outgoing.wait_ready().await;
            connection.incoming.next().await
        };
        tokio::select! {
            frame = next => match frame {
                Some(frame) => session.on_frame(&frame),
                None => break,
            },
            () = &mut stop => break,
            // The client no longer reads.
            () = outgoing.when_gone() => break,
        }
    }
    session.running.cancel_all();
    let ended = async { while session.tasks.join_next().await.is_some() {} };
    if timeout(SHUTDOWN_TIMEOUT, ended).await.is_err() {
        tracing::warn!("turns were left running: they did not end in time");
    }
    outgoing.close(Close::NORMAL);
    // The peer may have stopped reading.
    let _ = timeout(SHUTDOWN_TIMEOUT, outgoing.when_gone()).await;
}

struct Session<R> {
    runner: Arc<R>,
    peer: Arc<McpPeer>,
    running: Arc<RunningCalls>,
    tasks: JoinSet<()>,
    is_initialized: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeParams {
    protocol_version: String,
    #[serde(default)]
    capabilities: Value,
    #[serde(default)]
    client_info: Value,
}

#[derive(Deserialize)]
struct CallParams {
    name: String,
    arguments: Option<Map<String, Value>>,
    #[serde(rename = "_meta")]
    meta: Option<CallMeta>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallMeta {
    progress_token: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CancelledParams {
    request_id: RequestKey,
}

/// The id of a request, in params.
#[derive(Deserialize)]
#[serde(untagged)]
enum RequestKey {
    Integer(i64),
    String(Box<str>),
}

impl<R: TurnRunner> Session<R> {
    fn on_frame(&mut self, frame: &Frame) {
        let Frame::Message(bytes) = frame else {
            tracing::warn!("a message of the MCP client was dropped: it is too long");
            return;
        };
        match parse(bytes) {
            Ok(Inbound::Request(request)) => self.on_request(&request),
            Ok(Inbound::Notification(notification)) => self.on_notification(&notification),
            Ok(Inbound::Response(response)) => self.peer.deliver(response),
            Err(FrameError::Refused {
                id: Some(id),
                error,
            }) => self.peer.refuse(&id, &error),
            // MCP has no response without an id, and no batches.
            Err(error) => tracing::warn!(?error, "a message of the MCP client was dropped"),
        }
    }

    fn on_request(&mut self, request: &InboundRequest<'_>) {
        let id = &request.id;
        let outcome = match &*request.method {
            "initialize" => self.initialize(request.params),
            "ping" => Ok(json!({})),
            "tools/list" | "tools/call" if !self.is_initialized => Err(ErrorObject::new(
                code::INVALID_REQUEST,
                "not initialized: send initialize first",
            )),
            "tools/list" => Ok(tool_list()),
            "tools/call" => match self.start_call(id, request.params) {
                Ok(None) => return,
                Ok(Some(report)) => Ok(call::result(&report)),
                Err(error) => Err(error),
            },
            method => Err(ErrorObject::new(
                code::METHOD_NOT_FOUND,
                format!("unknown method `{method}`: this server offers tools only"),
            )),
        };
        match outcome {
            Ok(result) => self.peer.answer(id, &result),
            Err(error) => self.peer.refuse(id, &error),
        }
    }

    fn on_notification(&mut self, notification: &InboundNotification<'_>) {
        if notification.method != "notifications/cancelled" {
            return;
        }
        if let Ok(params) = read::<CancelledParams>(notification.params) {
            self.running.cancel(&match params.request_id {
                RequestKey::Integer(id) => Id::Integer(id),
                RequestKey::String(id) => Id::String(id),
            });
        }
    }

    fn initialize(&mut self, params: Option<&RawValue>) -> Result<Value, ErrorObject> {
        let params: InitializeParams = read(params)?;
        if std::mem::replace(&mut self.is_initialized, true) {
            let message = "already initialized: open another connection for another client";
            return Err(ErrorObject::new(code::INVALID_REQUEST, message));
        }
        self.peer.declare(&params.capabilities);
        let asked = REVISIONS
            .into_iter()
            .find(|it| *it == params.protocol_version);
        let revision = asked.unwrap_or(REVISIONS[REVISIONS.len() - 1]);
        let client = params.client_info["name"].as_str().unwrap_or_default();
        let client = &client[..client.floor_char_boundary(NAME_BYTES_MAX)];
        let shows_forms = self.peer.shows_forms();
        tracing::info!(client, revision, shows_forms, "an MCP client is connected");
        Ok(json!({
            "protocolVersion": revision,
            "capabilities": { "tools": {} },
            "serverInfo": {
                "name": "raddle",
                "title": "Raddle",
                "version": env!("CARGO_PKG_VERSION"),
            },
            "instructions": INSTRUCTIONS,
        }))
    }

    /// Starts a call. Returns the report of one that fails before it starts.
    fn start_call(
        &mut self,
        id: &Id,
        params: Option<&RawValue>,
    ) -> Result<Option<TurnReport>, ErrorObject> {
        let params: CallParams = read(params)?;
        let request = match arguments::read(&params.name, params.arguments.unwrap_or_default()) {
            Ok(request) => request,
            Err(error @ ArgumentError::UnknownTool { .. }) => {
                return Err(ErrorObject::new(code::INVALID_PARAMS, error.to_string()));
            }
            // The client's model reads the result, and can correct its call.
            Err(error) => return Ok(Some(failed(error.to_string()))),
        };
        let cancelled = match self.running.add(id) {
            Ok(cancelled) => cancelled,
            Err(CallConflict::IdInUse) => {
                let message = "a request with this id is running: use another one";
                return Err(ErrorObject::new(code::INVALID_REQUEST, message));
            }
            Err(CallConflict::TooMany) => {
                let text = "too many calls run at a time; wait until one has ended";
                return Ok(Some(failed(text.to_owned())));
            }
        };
        let token = params.meta.and_then(|it| it.progress_token);
        let token = token.filter(|it| it.is_string() || it.is_number());
        let context = CallContext::new(self.peer.clone(), cancelled, token);
        let reply = CallReply {
            peer: self.peer.clone(),
            running: self.running.clone(),
            id: id.clone(),
            report: None,
        };
        let runner = self.runner.clone();
        tracing::info!(tool = params.name, %id, "a call of an MCP client started");
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn(async move {
            let report = runner.run(request, context).await;
            reply.send(report);
        });
        Ok(None)
    }
}

/// The report of a call that cannot start.
fn failed(text: String) -> TurnReport {
    TurnReport {
        thread_id: None,
        text,
        is_error: true,
    }
}

fn read<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, ErrorObject> {
    let text = params.map_or("{}", RawValue::get);
    serde_json::from_str(text)
        .map_err(|error| ErrorObject::new(code::INVALID_PARAMS, format!("invalid params: {error}")))
}

#[cfg(test)]
mod tests;
