//! A client and a vendor in one process.

use std::sync::Arc;
use std::time::Duration;

use raddle_model::scripted::{ModelScript, ScriptedServer};
use raddle_model::{
    AnswerStream, CallError, CallTimeouts, Endpoint, HistoryEntry, InputPart, ModelClient,
    ModelQuery, ResponsesRequest, StreamEvent, WireFormat,
};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// The timeouts of these tests.
pub const LIMITS: CallTimeouts = CallTimeouts {
    connect: Duration::from_secs(1),
    idle: Duration::from_secs(2),
    total: Duration::from_secs(60),
};

/// A vendor, and a client of it.
pub struct Vendor {
    pub server: ScriptedServer,
    pub client: ModelClient,
    pub endpoint: Endpoint,
    /// The wire of its calls.
    pub wire: WireFormat,
}

impl Vendor {
    /// Starts one in memory, where the clock can be paused.
    pub fn in_memory(script: &str) -> Self {
        let (server, dial) =
            ScriptedServer::in_memory(ModelScript::parse(script).expect("a script"));
        Self::of(server, ModelClient::with_dial(dial))
    }

    /// Starts one over TCP.
    pub async fn listen() -> Self {
        let address = "127.0.0.1:0".parse().expect("an address");
        let server = ScriptedServer::listen(address, ModelScript::default()).await;
        Self::of(server.expect("a server"), ModelClient::new())
    }

    /// Combines a server with a client.
    pub fn of(server: ScriptedServer, client: ModelClient) -> Self {
        let endpoint = server.base_url().parse().expect("an address");
        Self {
            server,
            client,
            endpoint,
            wire: WireFormat::Responses,
        }
    }

    /// Selects another wire for the calls.
    pub fn on(self, wire: WireFormat) -> Self {
        Self { wire, ..self }
    }

    /// Sends a text, and waits for an answer to begin.
    pub async fn ask(&self, text: &str) -> Result<AnswerStream, CallError> {
        if self.wire == WireFormat::Responses {
            let request = user_request(text);
            let stream = self.client.responses(&self.endpoint, &request, LIMITS);
            return stream.await;
        }
        let question = ModelQuery {
            model: "mock",
            history: vec![HistoryEntry::User(vec![InputPart::Text(text.into())])],
            ..ModelQuery::default()
        };
        self.question(&question).await
    }

    /// Sends a question on a wire other than Responses.
    pub async fn question(&self, question: &ModelQuery<'_>) -> Result<AnswerStream, CallError> {
        let (client, endpoint) = (&self.client, &self.endpoint);
        match self.wire {
            WireFormat::Responses => panic!("it is asked with a request"),
            WireFormat::Chat => client.chat(endpoint, question, LIMITS).await,
            WireFormat::Messages => client.messages(endpoint, question, LIMITS).await,
            WireFormat::Gemini => client.gemini(endpoint, question, LIMITS).await,
        }
    }

    /// Sends a text and returns all events.
    pub async fn events(&self, text: &str) -> Result<Vec<StreamEvent>, CallError> {
        collect_events(self.ask(text).await?).await
    }

    /// Sends a text and returns the streamed text of the answer.
    pub async fn text(&self, text: &str) -> Result<String, CallError> {
        Ok(streamed_text(&self.events(text).await?))
    }
}

/// Returns all events of a stream.
pub async fn collect_events(mut stream: AnswerStream) -> Result<Vec<StreamEvent>, CallError> {
    let mut events = Vec::new();
    while let Some(event) = stream.next().await? {
        events.push(event);
    }
    Ok(events)
}

/// Returns the streamed text of messages.
pub fn streamed_text(events: &[StreamEvent]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        StreamEvent::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// Returns a request with a message of the user.
pub fn user_request(text: &str) -> ResponsesRequest {
    ResponsesRequest {
        model: "mock".to_owned(),
        input: items(&[user_message(text)]),
        ..ResponsesRequest::default()
    }
}

/// Returns a message of the user as an item.
pub fn user_message(text: &str) -> Value {
    let content = json!([{ "type": "input_text", "text": text }]);
    json!({ "type": "message", "role": "user", "content": content })
}

pub fn items(items: &[Value]) -> Vec<Arc<RawValue>> {
    let raw_items = items.iter().map(|it| to_raw_value(it).expect("JSON"));
    raw_items.map(Into::into).collect()
}
