//! The one way out of a fence that has any: a proxy that lets through what is listed.
//!
//! A host is parsed once, into a [`Host`] that can say nothing odd; the rules look at that, and what is dialled
//! is that and nothing else. Names are resolved here, and an address that is not public, or is this
//! machine's own, is not dialled unless a rule names that very address. An empty list lets nothing through.

mod address;
mod head;
mod host;
mod local_addresses;
mod proxy;
mod rules;
mod socket;

pub use address::is_public;
pub use head::{BadHead, Forwarding, RequestHead};
pub use host::{BadHost, EgressTarget, Host};
pub use proxy::{Dialer, EgressDecision, Proxy, SystemDialer};
pub use rules::{BadRule, EgressRules, Verdict};
pub(crate) use socket::listen_inside;
pub use socket::{EgressSocket, PORT, variables};
