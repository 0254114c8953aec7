//! Extensions of Raddle. A client enables each by its name in `capabilities.extensions` of
//! `initialize`.

/// Notifications carry the sequence number of their record, and `thread/resume` can continue after
/// one.
pub const SEQ: &str = "raddle/seq";

/// A client declares its role: `{"role": "driver"}`, the default without this extension, or
/// `{"role": "observer"}`. An observer receives all notifications, receives no server requests, and
/// may not change anything.
pub const ROLES: &str = "raddle/roles";

/// Requests that change a thread may have a `clientRequestId` as idempotency key; the server
/// executes repeated requests with the same key once.
pub const IDEMPOTENCY: &str = "raddle/idempotency";

/// While a turn runs, `turn/progress` reports every few seconds why it is waiting.
pub const PROGRESS: &str = "raddle/progress";

/// The client may call methods of plugins with `plugin/call`, and receives their events as
/// `plugin/event`.
pub const PLUGINS: &str = "raddle/plugins";

/// Requests for approval of a file change have the hunks of the change, and the client may accept
/// some of them.
pub const HUNKS: &str = "raddle/hunks";

/// Names of all extensions.
pub const ALL: &[&str] = &[SEQ, ROLES, IDEMPOTENCY, PROGRESS, PLUGINS, HUNKS];
