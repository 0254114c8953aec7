//! What only this server does. A client opts into each by its name in `capabilities.extensions` of `initialize`.

/// Notifications carry the number of the record they tell, and `thread/resume` goes on after one.
pub const SEQ: &str = "raddle/seq";

/// A client says what it may do: `{"role": "driver"}`, which everyone is who does not opt in, or
/// `{"role": "observer"}`, who hears everything, is asked nothing and changes nothing.
pub const ROLES: &str = "raddle/roles";

/// Requests that change a thread may have a `clientRequestId`, and are then done once however often they are
/// sent.
pub const IDEMPOTENCY: &str = "raddle/idempotency";

/// While a turn runs, `turn/progress` says every few seconds what it waits for.
pub const PROGRESS: &str = "raddle/progress";

/// All of them.
pub const ALL: &[&str] = &[SEQ, ROLES, IDEMPOTENCY, PROGRESS];
