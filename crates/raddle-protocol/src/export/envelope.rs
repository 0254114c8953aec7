//! The messages around the types: JSON-RPC's own shapes, and the unions of all that may be said.
//!
//! These are built from the rows, because no Rust type holds them: the server reads the name of a
//! method first and its params after.

use serde_json::{Value, json};

use super::catalog::{REFERENCE, View};
use crate::{NOTIFICATIONS, SERVER_REQUESTS};

pub(super) const CLIENT_REQUEST: &str = "ClientRequest";
pub(super) const CLIENT_NOTIFICATION: &str = "ClientNotification";
pub(super) const SERVER_REQUEST: &str = "ServerRequest";
pub(super) const SERVER_NOTIFICATION: &str = "ServerNotification";

/// Everything that may be said, by side and by whether it wants an answer.
pub(super) const UNIONS: [&str; 4] = [
    CLIENT_REQUEST,
    CLIENT_NOTIFICATION,
    SERVER_REQUEST,
    SERVER_NOTIFICATION,
];

/// JSON-RPC's own shapes, without `jsonrpc`, which the wire leaves out.
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
            json!({ "description": "What a client may ask.", "oneOf": client_requests }),
        ),
        (
            CLIENT_NOTIFICATION,
            json!({ "description": "What a client may tell.", "oneOf": [initialized] }),
        ),
        (
            SERVER_REQUEST,
            json!({ "description": "What the server may ask.", "oneOf": server_requests }),
        ),
        (
            SERVER_NOTIFICATION,
            json!({
                "description": "What the server may tell.",
                "properties": {
                    "emittedAtMs": {
                        "description": "When it was sent, in milliseconds since 1970.",
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
                "description": "Asks for something; exactly one answer follows.",
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
                "description": "Tells something; no answer follows.",
                "properties": { "method": text, "params": true },
                "required": ["method"],
                "type": "object",
            }),
        ),
        (
            "JSONRPCResponse",
            json!({
                "description": "Answers a request that went well.",
                "properties": { "id": point("RequestId"), "result": true },
                "required": ["id", "result"],
                "type": "object",
            }),
        ),
        (
            "JSONRPCError",
            json!({
                "description": "Answers a request that did not go well.",
                "properties": { "error": point("JSONRPCErrorError"), "id": point("RequestId") },
                "required": ["error", "id"],
                "type": "object",
            }),
        ),
        (
            "JSONRPCErrorError",
            json!({
                "description": "Why a request did not go well.",
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
