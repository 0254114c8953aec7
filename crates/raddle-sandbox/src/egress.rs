//! The one way out of a fence that has any: a proxy that lets through what is listed.
//!
//! A host is parsed once, into a [`Host`] that can say nothing odd; the rules look at that, and what is dialled
//! is that and nothing else. Names are resolved here, and an address that is not public, or is this
//! machine's own, is not dialled unless a rule names that very address. An empty list lets nothing through.

mod address;
mod head;
mod host;
mod own;
mod proxy;
mod rules;
mod way_out;

pub use address::is_public;
pub use head::{BadHead, Head, Way};
pub use host::{BadHost, Host, Target};
pub use proxy::{Noted, Outside, Proxy, System};
pub use rules::{BadRule, Rules, Verdict};
pub(crate) use way_out::hand_out;
pub use way_out::{PORT, WayOut, variables};
