//! The messages around the types: the JSON-RPC messages, and the unions of all requests and
//! notifications.
//!
//! These are built from the rows, because no Rust type holds them: the server reads the name of a
//! method first and its params afterwards.

use serde_json::{Value, json};

use super::catalog::{REFERENCE, View};
use crate::{NOTIFICATIONS, SERVER_REQUESTS};

pub(super) const CLIENT_REQUEST: &str = "ClientRequest";
pub(super) const CLIENT_NOTIFICATION: &str = "ClientNotification";
pub(super) const SERVER_REQUEST: &str = "ServerRequest";
pub(super) const SERVER_NOTIFICATION: &str = "ServerNotification";

/// Unions of all requests and notifications, by sender.
pub(super) const UNIONS: [&str; 4] = [
    CLIENT_REQUEST,
    CLIENT_NOTIFICATION,
    SERVER_REQUEST,
    SERVER_NOTIFICATION,
];

/// JSON-RPC messages, without `jsonrpc`, which the wire omits.
pub(super) const MESSAGES: [&str; 6] = [
    "JSONRPCError",
    "JSONRPCErrorError",
    "JSONRPCMessage",
    "JSONRPCNotification",
    "JSONRPCRequest",
    "JSONRPCResponse",
];

pub(super) fn types(view: View) -> Vec<(String, Value)> {
    [unions(view), messages()].concat()
}

fn unions(view: View) -> Vec<(String, Value)> {
    let client_requests: Vec<Value> = view
        .methods()
        .map(|row| request(row.name, row.doc, row.params))
        .collect();
    let server_requests: Vec<Value> = SERVER_REQUESTS
        .iter()
        .map(|row| request(row.name, row.doc, Some(row.params)))
        .collect();
    let server_notifications: Vec<Value> = NOTIFICATIONS
        .iter()
        .map(|row| notification(row.name, row.doc, Some(row.params)))
        .collect();
    let initialized = notification(
        "initialized",
        "The client is ready. Need not be sent.",
        None,
    );
    named([
        (
            CLIENT_REQUEST,
            json!({ "description": "Requests that a client may send.", "oneOf": client_requests }),
        ),
        (
            CLIENT_NOTIFICATION,
            json!({ "description": "Notifications that a client may send.", "oneOf": [initialized] }),
        ),
        (
            SERVER_REQUEST,
            json!({ "description": "Requests that the server may send.", "oneOf": server_requests }),
        ),
        (
            SERVER_NOTIFICATION,
            json!({
                "description": "Notifications that the server may send.",
                "properties": {
                    "emittedAtMs": {
                        "description": "Time of sending, in milliseconds since the epoch.",
                        "format": "int64",
                        "type": "integer",
                    },
                },
                "oneOf": server_notifications,
            }),
        ),
    ])
}

fn request(method: &str, doc: &str, params: Option<&str>) -> Value {
    let title = format!("{}Request", capitalized(method));
    let mut required = vec!["id", "method"];
    required.extend(params.map(|_| "params"));
    json!({
        "description": doc.trim(),
        "properties": {
            "id": point("RequestId"),
            "method": { "enum": [method], "title": format!("{title}Method"), "type": "string" },
            "params": params.map_or_else(|| json!({ "type": "null" }), point),
        },
        "required": required,
        "title": title,
        "type": "object",
    })
}

fn notification(method: &str, doc: &str, params: Option<&str>) -> Value {
    let title = format!("{}Notification", capitalized(method));
    let mut arm = json!({
        "description": doc.trim(),
        "properties": {
            "method": { "enum": [method], "title": format!("{title}Method"), "type": "string" },
        },
        "required": ["method"],
        "title": title,
        "type": "object",
    });
    if let Some(params) = params {
        arm["properties"]["params"] = point(params);
        arm["required"] = json!(["method", "params"]);
    }
    arm
}

fn messages() -> Vec<(String, Value)> {
    let text = json!({ "type": "string" });
    let text_or_null = json!({ "type": ["string", "null"] });
    named([
        (
            "JSONRPCMessage",
            json!({
                "description": "One message, in either direction.",
                "anyOf": [
                    point("JSONRPCRequest"),
                    point("JSONRPCNotification"),
                    point("JSONRPCResponse"),
                    point("JSONRPCError"),
                ],
            }),
        ),
        (
            "JSONRPCRequest",
            json!({
                "description": "A request; exactly one response follows.",
                "properties": {
                    "id": point("RequestId"),
                    "method": text,
                    "params": true,
                    "trace": {
                        "anyOf": [point("W3cTraceContext"), { "type": "null" }],
                        "description": "The trace the request belongs to.",
                    },
                },
                "required": ["id", "method"],
                "type": "object",
            }),
        ),
        (
            "W3cTraceContext",
            json!({
                "description": "A trace, as W3C Trace Context spells it.",
                "properties": { "traceparent": text_or_null, "tracestate": text_or_null },
                "type": "object",
            }),
        ),
        (
            "JSONRPCNotification",
            json!({
                "description": "A notification; no response follows.",
                "properties": { "method": text, "params": true },
                "required": ["method"],
                "type": "object",
            }),
        ),
        (
            "JSONRPCResponse",
            json!({
                "description": "Response to a successful request.",
                "properties": { "id": point("RequestId"), "result": true },
                "required": ["id", "result"],
                "type": "object",
            }),
        ),
        (
            "JSONRPCError",
            json!({
                "description": "Response to a failed request.",
                "properties": { "error": point("JSONRPCErrorError"), "id": point("RequestId") },
                "required": ["error", "id"],
                "type": "object",
            }),
        ),
        (
            "JSONRPCErrorError",
            json!({
                "description": "Error of a failed request.",
                "properties": {
                    "code": { "format": "int64", "type": "integer" },
                    "data": true,
                    "message": text,
                },
                "required": ["code", "message"],
                "type": "object",
            }),
        ),
    ])
}

fn named<const N: usize>(types: [(&str, Value); N]) -> Vec<(String, Value)> {
    types.map(|(name, schema)| (name.to_owned(), schema)).into()
}

fn point(name: &str) -> Value {
    json!({ "$ref": format!("{REFERENCE}{name}") })
}

pub(super) fn capitalized(method: &str) -> String {
    let mut letters = method.chars();
    letters
        .next()
        .map(|first| first.to_ascii_uppercase())
        .into_iter()
        .chain(letters)
        .collect()
}
