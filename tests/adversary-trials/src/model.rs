//! A model with planned answers: tool calls of any shape.
//!
//! It is a small HTTP server of its own, because `raddle mock` only sends answers that a vendor
//! would send.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::call::{Input, ModelCallSpec};
use crate::secrets::{KEY_VARIABLE, Secrets};

/// Prefix of a batch number in the user's message.
const BATCH: &str = "BATCH ";

/// Prefix of the session id in the output of a command that continues.
const SESSION: &str = "session ID ";

pub struct HostileModel {
    port: u16,
    shared: Arc<SharedState>,
}

/// State shared by its threads.
#[derive(Default)]
struct SharedState {
    state: Mutex<State>,
    /// Notified at every request.
    request_received: Condvar,
}

#[derive(Default)]
struct State {
    /// Planned calls, by the number of the batch.
    batches: HashMap<usize, Batch>,
    /// First output of each call and its time, by call id.
    outputs: HashMap<String, (Instant, String)>,
    /// Number of requests.
    requests: usize,
    /// Requests that contained a secret, and its encoding.
    leaks: Vec<String>,
    /// The key of the last request.
    key: Option<String>,
}

struct Batch {
    calls: Vec<ModelCallSpec>,
    answers: usize,
}

impl HostileModel {
    pub fn open(secrets: Secrets) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let shared_state = Arc::<SharedState>::default();
        let (shared, secrets) = (shared_state.clone(), Arc::new(secrets));
        // The thread ends with the process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (shared, secrets) = (shared.clone(), secrets.clone());
                // A client may disconnect in the middle of an answer.
                std::thread::spawn(move || drop(serve(stream, &shared, &secrets)));
            }
        });
        Ok(Self {
            port,
            shared: shared_state,
        })
    }

    /// Returns a configuration with this model under this name.
    pub fn config(&self, name: &str) -> String {
        let port = self.port;
        format!(
            "model = \"{name}\"\nmodel_provider = \"adversary\"\n\n[model_providers.adversary]\n\
             base_url = \"http://127.0.0.1:{port}/v1\"\nenv_key = \"{KEY_VARIABLE}\"\n"
        )
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Plans a batch, and returns the user message that triggers it.
    pub fn plan(&self, number: usize, calls: Vec<ModelCallSpec>) -> String {
        let batch = Batch { calls, answers: 0 };
        self.state().batches.insert(number, batch);
        format!("{BATCH}{number}.")
    }

    /// Returns the output of a call, if it came back.
    pub fn output(&self, call: &ModelCallSpec) -> Option<String> {
        let (_, output) = self.state().outputs.remove(&call.id())?;
        Some(output)
    }

    /// Waits for the output of a call, and returns it with its time.
    pub fn wait_for(&self, call: &ModelCallSpec, end: Instant) -> Option<(Instant, String)> {
        let mut state = self.state();
        loop {
            if let Some(output) = state.outputs.get(&call.id()) {
                return Some(output.clone());
            }
            let remaining = end.checked_duration_since(Instant::now())?;
            let result = self.shared.request_received.wait_timeout(state, remaining);
            state = result.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns the output of the text typed into it.
    pub fn typed_output(&self, call: &ModelCallSpec) -> Option<String> {
        let (_, output) = self.state().outputs.remove(&typed_id(call))?;
        Some(output)
    }

    pub fn key(&self) -> Option<String> {
        self.state().key.clone()
    }

    pub fn leaks(&self) -> Vec<String> {
        self.state().leaks.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }
}

impl SharedState {
    /// A thread that panicked with the lock has already failed the run.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn serve(stream: TcpStream, shared: &SharedState, secrets: &Secrets) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    while let Some(request) = ModelRequest::read(&mut reader)? {
        let answer = answer(&request, shared, secrets)?;
        write!(
            writer,
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{answer}",
            answer.len()
        )?;
    }
    Ok(())
}

struct ModelRequest {
    key: Option<String>,
    /// All headers except the key and the length.
    head: String,
    body: Vec<u8>,
}

impl ModelRequest {
    fn read(reader: &mut impl BufRead) -> Result<Option<Self>> {
        let mut request = Self {
            key: None,
            head: String::new(),
            body: Vec::new(),
        };
        let mut bytes = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            if line == "\r\n" {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            match name.to_ascii_lowercase().as_str() {
                "authorization" => request.key = Some(value.trim().to_owned()),
                "content-length" => bytes = value.trim().parse().context("a length")?,
                _ => request.head.push_str(&line),
            }
        }
        request.body.resize(bytes, 0);
        reader.read_exact(&mut request.body)?;
        Ok(Some(request))
    }
}

fn answer(request: &ModelRequest, shared: &SharedState, secrets: &Secrets) -> Result<String> {
    let body: Value = serde_json::from_slice(&request.body).context("a request in JSON")?;
    let leak = [request.head.as_bytes(), &request.body]
        .into_iter()
        .find_map(|it| secrets.found_in(it));
    let mut state = shared.state();
    state.requests += 1;
    state.key.clone_from(&request.key);
    state
        .leaks
        .extend(leak.map(|it| format!("a request to the model: {it}")));
    let items = body["input"].as_array().map_or(&[][..], Vec::as_slice);
    for item in items {
        let (id, output) = (item["call_id"].as_str(), &item["output"]);
        if let (Some(id), false) = (id, output.is_null()) {
            let text = output
                .as_str()
                .map_or_else(|| output.to_string(), Into::into);
            let entry = (Instant::now(), text);
            state.outputs.entry(id.to_owned()).or_insert(entry);
        }
    }
    shared.request_received.notify_all();
    let number = items.iter().rev().find_map(batch_of);
    let calls = match number.and_then(|it| state.batches.remove(&it)) {
        Some(mut batch) if batch.answers == 0 => {
            batch.answers = 1;
            let calls = batch.calls.clone();
            state.batches.insert(number.unwrap_or_default(), batch);
            calls
        }
        Some(batch) => typing(&batch.calls, &state.outputs),
        None => Vec::new(),
    };
    Ok(events(state.requests, &calls))
}

/// Returns the batch that a user message asks for.
fn batch_of(item: &Value) -> Option<usize> {
    if item["role"] != "user" {
        return None;
    }
    let text = item["content"].to_string();
    let (_, after) = text.rsplit_once(BATCH)?;
    after.split_once('.')?.0.parse().ok()
}

/// Returns calls that type into the commands that continue.
fn typing(
    calls: &[ModelCallSpec],
    outputs: &HashMap<String, (Instant, String)>,
) -> Vec<ModelCallSpec> {
    let typed = calls.iter().filter_map(|call| {
        let (_, after) = outputs.get(&call.id())?.1.split_once(SESSION)?;
        let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
        let session: u64 = digits.parse().ok()?;
        let arguments = json!({
            "session_id": session, "chars": call.typed.as_ref()?, "yield_time_ms": 1000,
        });
        let mut next = call.clone();
        next.name = "write_stdin".to_owned();
        next.input = Input::Arguments(arguments.to_string());
        Some(next)
    });
    typed.collect()
}

/// Returns an answer as a stream of events; without calls it is a final message.
fn events(number: usize, calls: &[ModelCallSpec]) -> String {
    let mut out = String::new();
    let mut event = |members: Value| {
        let kind = members["type"].as_str().unwrap_or_default();
        // Writing to a string never fails.
        let _ = write!(out, "event: {kind}\ndata: {members}\n\n");
    };
    let response = |status: &str| {
        json!({"id": format!("resp_{number}"), "object": "response", "status": status,
            "model": "adversary", "output": []})
    };
    event(json!({"type": "response.created", "response": response("in_progress")}));
    let mut items: Vec<Value> = calls.iter().map(item).collect();
    if items.is_empty() {
        items.push(
            json!({"type": "message", "id": format!("msg_{number}"), "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "done", "annotations": []}]}),
        );
    }
    for (at, item) in items.iter().enumerate() {
        event(json!({"type": "response.output_item.added", "output_index": at, "item": item}));
        event(json!({"type": "response.output_item.done", "output_index": at, "item": item}));
    }
    let mut response = response("completed");
    response["output"] = Value::Array(items);
    response["usage"] = json!({"input_tokens": 1, "output_tokens": 1, "total_tokens": 2});
    event(json!({"type": "response.completed", "response": response}));
    out
}

fn item(call: &ModelCallSpec) -> Value {
    let id = match call.name.as_str() {
        "write_stdin" if call.typed.is_some() => typed_id(call),
        _ => call.id(),
    };
    let name = &call.name;
    match &call.input {
        Input::Arguments(text) => {
            json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name,
            "arguments": text, "status": "completed"})
        }
        Input::Text(text) => {
            json!({"type": "custom_tool_call", "id": format!("ctc_{id}"), "call_id": id,
            "name": name, "input": text, "status": "completed"})
        }
    }
}

/// Returns the id of a call that types into another one.
fn typed_id(call: &ModelCallSpec) -> String {
    format!("{}-typed", call.id())
}
