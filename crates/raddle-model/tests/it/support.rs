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

/// The limits of these tests.
pub const LIMITS: CallTimeouts = CallTimeouts {
    connect: Duration::from_secs(1),
    idle: Duration::from_secs(2),
    total: Duration::from_secs(60),
};

/// A vendor, and the way to it.
pub struct Vendor {
    pub server: ScriptedServer,
    pub client: ModelClient,
    pub endpoint: Endpoint,
    /// How it is asked.
    pub wire: WireFormat,
}

impl Vendor {
    /// In memory, where the clock can stand still.
    pub fn in_memory(script: &str) -> Self {
        let (server, dial) =
            ScriptedServer::in_memory(ModelScript::parse(script).expect("a script"));
        Self::of(server, ModelClient::with_dial(dial))
    }

    /// Over TCP.
    pub async fn listen() -> Self {
        let address = "127.0.0.1:0".parse().expect("an address");
        let server = ScriptedServer::listen(address, ModelScript::default()).await;
        Self::of(server.expect("a server"), ModelClient::new())
    }

    /// This one, and this way to it.
    pub fn of(server: ScriptedServer, client: ModelClient) -> Self {
        let endpoint = server.base_url().parse().expect("an address");
        Self {
            server,
            client,
            endpoint,
            wire: WireFormat::Responses,
        }
    }

    /// The same, asked on another wire.
    pub fn on(self, wire: WireFormat) -> Self {
        Self { wire, ..self }
    }

    /// Asks, and waits for an answer to begin.
    pub async fn ask(&self, text: &str) -> Result<AnswerStream, CallError> {
        if self.wire == WireFormat::Responses {
            let request = asking(text);
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

    /// Asks something on a wire that writes it by itself.
    pub async fn question(&self, question: &ModelQuery<'_>) -> Result<AnswerStream, CallError> {
        let (client, endpoint) = (&self.client, &self.endpoint);
        match self.wire {
            WireFormat::Responses => panic!("it is asked with a request"),
            WireFormat::Chat => client.chat(endpoint, question, LIMITS).await,
            WireFormat::Messages => client.messages(endpoint, question, LIMITS).await,
            WireFormat::Gemini => client.gemini(endpoint, question, LIMITS).await,
        }
    }

    /// Asks and listens to the end.
    pub async fn hear(&self, text: &str) -> Result<Vec<StreamEvent>, CallError> {
        heard(self.ask(text).await?).await
    }

    /// Asks, and gathers the text of the answer as it grows.
    pub async fn text(&self, text: &str) -> Result<String, CallError> {
        Ok(grown(&self.hear(text).await?))
    }
}

/// Everything that is said.
pub async fn heard(mut stream: AnswerStream) -> Result<Vec<StreamEvent>, CallError> {
    let mut events = Vec::new();
    while let Some(event) = stream.next().await? {
        events.push(event);
    }
    Ok(events)
}

/// The text of messages as it grew.
pub fn grown(events: &[StreamEvent]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        StreamEvent::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// A call in which the user says something.
pub fn asking(text: &str) -> ResponsesRequest {
    ResponsesRequest {
        model: "mock".to_owned(),
        input: items(&[saying(text)]),
        ..ResponsesRequest::default()
    }
}

/// What the user says, as an item.
pub fn saying(text: &str) -> Value {
    let content = json!([{ "type": "input_text", "text": text }]);
    json!({ "type": "message", "role": "user", "content": content })
}

pub fn items(items: &[Value]) -> Vec<Arc<RawValue>> {
    let written = items.iter().map(|it| to_raw_value(it).expect("JSON"));
    written.map(Into::into).collect()
}
