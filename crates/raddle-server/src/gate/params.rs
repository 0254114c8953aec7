//! The params of a request: their size, their shape, and the members that need an opt-in.

use std::collections::HashMap;

use raddle_protocol::table::{Method, Stability};
use raddle_rpc::marks;
use serde_json::value::RawValue;

use super::{arrays, bounds};
use crate::session::Session;
use crate::wire_error::WireError;

/// The largest params whose faults are explained: an explanation quotes the faulty value.
const EXPLAINED_BYTES_MAX: usize = 16 << 10;

/// Reads the params of a client's request, or says what is wrong with them.
pub(super) fn read<M: Method>(
    params: Option<&RawValue>,
    session: &Session,
) -> Result<M::Params, WireError> {
    let is_experimental = session.client().is_none_or(|client| client.experimental);
    if M::STABILITY == Stability::Experimental && !is_experimental {
        return Err(WireError::Experimental(M::NAME.into()));
    }
    let text = match params {
        Some(params) => params.get(),
        None if M::TAKES_PARAMS => {
            return Err(WireError::InvalidRequest("missing field `params`".into()));
        }
        None => "null",
    };
    // Serde would also read types from an array, by the order of their members; `arrays` rejects
    // that.
    if M::TAKES_PARAMS && !text.starts_with('{') {
        let what = "params must be an object".to_owned();
        return Err(WireError::InvalidRequest(what));
    }
    if !marks::are_few(text) {
        let what = format!("params have more than {} values", marks::VALUES_MAX);
        return Err(WireError::InvalidRequest(what));
    }
    if !is_experimental && !M::GATED.is_empty() {
        refuse_gated::<M>(text)?;
    }
    let params = serde_json::from_str(text)
        .map_err(|_| WireError::InvalidRequest(explain::<M::Params>(text)))?;
    bounds::check(M::NAME, text)?;
    arrays::check(text, &params)?;
    Ok(params)
}

/// Rejects params that need an opt-in, unless they are null.
fn refuse_gated<M: Method>(text: &str) -> Result<(), WireError> {
    // Values stay unparsed: one that cannot be parsed must not let the others through.
    let members = serde_json::from_str::<HashMap<String, &RawValue>>(text)
        .map_err(|error| WireError::InvalidRequest(error.to_string()))?;
    match M::GATED.iter().find(|name| {
        members
            .get(**name)
            .is_some_and(|value| value.get() != "null")
    }) {
        Some(name) => Err(WireError::Experimental(format!("{}.{name}", M::NAME))),
        None => Ok(()),
    }
}

/// Says what is wrong with params, and where. Slower than parsing, so only done after a failure.
fn explain<P: serde::de::DeserializeOwned>(text: &str) -> String {
    if text.len() > EXPLAINED_BYTES_MAX {
        return "params have the wrong shape, and are too large to say where".to_owned();
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    match serde_path_to_error::deserialize::<_, P>(&mut reader) {
        Ok(_) => "malformed params".to_owned(),
        Err(error) => {
            let path = error.path().to_string();
            let what = error.into_inner().to_string();
            // The position is relative to params, so it would mislead the client.
            let what = what
                .split(" at line ")
                .next()
                .unwrap_or_default()
                .to_owned();
            if path == "." {
                what
            } else {
                format!("{path}: {what}")
            }
        }
    }
}
