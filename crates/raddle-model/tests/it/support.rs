//! A client and a vendor in one process.

use std::sync::Arc;
use std::time::Duration;

use raddle_model::scripted::{Script, Server};
use raddle_model::{CallError, Client, Endpoint, Event, Limits, Request, Stream};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// The limits of these tests.
pub const LIMITS: Limits = Limits {
    connect: Duration::from_secs(1),
    idle: Duration::from_secs(2),
    total: Duration::from_secs(60),
};

/// A vendor, and the way to it.
pub struct Vendor {
    pub server: Server,
    pub client: Client,
    pub endpoint: Endpoint,
}

impl Vendor {
    /// In memory, where the clock can stand still.
    pub fn in_memory(script: &str) -> Self {
        let (server, dial) = Server::in_memory(Script::parse(script).expect("a script"));
        Self::of(server, Client::over(dial))
    }

    /// Over TCP.
    pub async fn listen() -> Self {
        let address = "127.0.0.1:0".parse().expect("an address");
        let server = Server::listen(address, Script::default()).await;
        Self::of(server.expect("a server"), Client::new())
    }

    /// This one, and this way to it.
    pub fn of(server: Server, client: Client) -> Self {
        let endpoint = server.base_url().parse().expect("an address");
        Self {
            server,
            client,
            endpoint,
        }
    }

    /// Asks, and waits for an answer to begin.
    pub async fn ask(&self, text: &str) -> Result<Stream, CallError> {
        let request = asking(text);
        self.client
            .responses(&self.endpoint, &request, LIMITS)
            .await
    }

    /// Asks and listens to the end.
    pub async fn hear(&self, text: &str) -> Result<Vec<Event>, CallError> {
        let mut stream = self.ask(text).await?;
        let mut events = Vec::new();
        while let Some(event) = stream.next().await? {
            events.push(event);
        }
        Ok(events)
    }

    /// Asks, and gathers the text of the answer as it grows.
    pub async fn text(&self, text: &str) -> Result<String, CallError> {
        Ok(grown(&self.hear(text).await?))
    }
}

/// The text of messages as it grew.
pub fn grown(events: &[Event]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        Event::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// A call in which the user says something.
pub fn asking(text: &str) -> Request {
    Request {
        model: "mock".to_owned(),
        input: items(&[saying(text)]),
        ..Request::default()
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
