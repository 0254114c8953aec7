//! The only network access of a sandbox that has any: a proxy that forwards to listed hosts.
//!
//! A host is parsed once, into a [`Host`] in canonical form. The rules examine it, and the proxy
//! dials exactly that host. The proxy resolves names itself. It does not dial an address that is
//! not public, or that belongs to this machine, unless a rule names that very address. An empty
//! list allows nothing.

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
