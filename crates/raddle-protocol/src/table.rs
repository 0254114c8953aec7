//! Rows of the method tables, and the macros that declare them.
//!
//! Every method, notification and server request is declared once, in `methods.rs`,
//! `notifications.rs` and `server_requests.rs`. Dispatch, the gate, the JSON Schema, the TypeScript
//! types and the reference pages are all derived from those three tables.

mod lane;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

pub use self::lane::{Lane, Resource, plain_path};

/// A request of a client: its name on the wire and the types of its params and result.
pub trait Method: Sized + 'static {
    /// Name of the method on the wire.
    const NAME: &'static str;
    /// Params that the client sends.
    type Params: DeserializeOwned + Serialize + Send + 'static;
    /// Result that the server returns.
    type Result: DeserializeOwned + Serialize + Send + 'static;
    /// Whether `params` is required.
    const TAKES_PARAMS: bool;
    /// Whether a client must opt in to the method.
    const STABILITY: Stability;
    /// Params for which a client must opt in, by their names on the wire.
    const GATED: &'static [&'static str];
    /// Whether the params have a `clientRequestId`.
    const HAS_IDEMPOTENCY_KEY: bool;
    /// Whether an observer may send the request: from an observer, it changes nothing but the
    /// observer's own connection.
    const READS: bool;
    /// Whether a client that does not know the outcome may send the request again, without an
    /// idempotency key.
    const REPEATABLE: bool;
    /// Node that serves the request, if several nodes share a home.
    const SERVED_BY: ServedBy;

    /// Returns the lane of the request, which determines the requests it must not overtake.
    fn lane(params: &Self::Params) -> Lane;

    /// Returns the idempotency key of the request, or `None` if it has none or the method accepts
    /// none.
    fn client_request_id(params: &Self::Params) -> Option<&str>;
}

/// A request of the server to its clients.
pub trait ServerMethod: Sized + 'static {
    /// Name of the method on the wire.
    const NAME: &'static str;
    /// Params that the server sends.
    type Params: DeserializeOwned + Serialize + Send + 'static;
    /// Result that the client returns.
    type Result: DeserializeOwned + Serialize + Send + 'static;
}

/// Params of a method without params: absent, null and any object are accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoParams;

impl Serialize for NoParams {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

impl<'de> Deserialize<'de> for NoParams {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

/// Whether a client must opt in to a method or notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stability {
    /// Available to every client.
    Stable,
    /// Only for connections that set `experimentalApi` in `initialize`.
    Experimental,
}

/// Importance of a method or notification for the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// Frozen per release and checked against the pinned reference.
    Core,
    /// Served where it is useful, without that guarantee.
    Useful,
}

/// Recipients of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Connections subscribed to the thread that the notification names.
    Subscribers,
    /// Every initialized connection.
    Everyone,
    /// Only the connection whose request it belongs to.
    Caller,
}

/// Node that serves a request, if several nodes share a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedBy {
    /// The node that receives it, from the journal that all nodes share or without any thread.
    AnyNode,
    /// The node that receives it, which creates a thread and owns it. If the thread already exists
    /// because the request was sent before, the owner of the thread serves it.
    Creator,
    /// The node that owns the thread. If no live node owns it, the node that receives the request
    /// opens it.
    Owner,
    /// As [`Self::Owner`], but the request opens no thread for a client that named neither
    /// `raddle/seq` nor `raddle/idempotency`: it is rejected if no node has loaded the thread.
    Loaded,
    /// The node from which the client receives the events of the thread, else the node that
    /// receives the request. The request opens no thread.
    Subscription,
}

/// A row of the method table.
#[derive(Clone, Copy, Debug)]
pub struct MethodRow {
    /// Name of the method on the wire.
    pub name: &'static str,
    /// Name of the params type; `None` if the method has no params.
    pub params: Option<&'static str>,
    /// Name of the result type.
    pub result: &'static str,
    /// Importance for the contract.
    pub tier: Tier,
    /// Whether a client must opt in.
    pub stability: Stability,
    /// Params that require `experimentalApi`, by their names on the wire.
    pub gated: &'static [&'static str],
    /// Lane, as the table spells it.
    pub lane: &'static str,
    /// Whether an observer may send the request.
    pub reads: bool,
    /// Whether the request may be sent again without an idempotency key.
    pub repeatable: bool,
    /// Whether the request may be sent again with an idempotency key.
    pub has_idempotency_key: bool,
    /// Node that serves the request.
    pub served_by: ServedBy,
    /// Description in one line.
    pub doc: &'static str,
    /// Functions that describe and check the types.
    pub shapes: Shapes,
}

/// A row of the server-request table.
#[derive(Clone, Copy, Debug)]
pub struct ServerRequestRow {
    /// Name of the method on the wire.
    pub name: &'static str,
    /// Name of the params type.
    pub params: &'static str,
    /// Name of the result type.
    pub result: &'static str,
    /// Description in one line.
    pub doc: &'static str,
    /// Functions that describe and check the types.
    pub shapes: Shapes,
}

/// A row of the notification table.
#[derive(Clone, Copy, Debug)]
pub struct NotificationRow {
    /// Name of the notification on the wire.
    pub name: &'static str,
    /// Name of the params type.
    pub params: &'static str,
    /// Importance for the contract.
    pub tier: Tier,
    /// Whether a client must opt in.
    pub stability: Stability,
    /// Recipients of the notification.
    pub scope: Scope,
    /// Description in one line.
    pub doc: &'static str,
    /// Functions that describe and check the type; the result part is empty.
    pub shapes: Shapes,
}

/// Functions over the types of a row.
#[derive(Clone, Copy, Debug)]
pub struct Shapes {
    /// Adds the types to a schema generator.
    pub describe: fn(&mut schemars::SchemaGenerator),
    /// Reads params and writes them again.
    #[cfg(feature = "round-trip")]
    pub params: fn(&str) -> Result<RoundTrip, serde_json::Error>,
    /// Reads a result and writes it again.
    #[cfg(feature = "round-trip")]
    pub result: fn(&str) -> Result<RoundTrip, serde_json::Error>,
}

/// A value read and written again, for the contract check.
#[cfg(feature = "round-trip")]
#[derive(Clone, Debug)]
pub struct RoundTrip {
    /// The value as it was written again.
    pub json: String,
    /// Whether some part of the value was not recognized.
    pub unrecognized: bool,
}

/// Reads a value as `T` and writes it again.
#[cfg(feature = "round-trip")]
pub fn round_trip<T: DeserializeOwned + Serialize + std::fmt::Debug>(
    text: &str,
) -> Result<RoundTrip, serde_json::Error> {
    let value: T = serde_json::from_str(text)?;
    Ok(RoundTrip {
        json: serde_json::to_string(&value)?,
        unrecognized: format!("{value:?}").contains("Unrecognized("),
    })
}

macro_rules! shapes {
    ($($params:ty)? => $($result:ty)?) => {
        $crate::Shapes {
            describe: |_generator| {
                $( let _ = _generator.subschema_for::<$params>(); )?
                $( let _ = _generator.subschema_for::<$result>(); )?
            },
            #[cfg(feature = "round-trip")]
            params: |_text| { shapes!(@trip _text $($params)?) },
            #[cfg(feature = "round-trip")]
            result: |_text| { shapes!(@trip _text $($result)?) },
        }
    };
    (@trip $text:ident) => {
        Err(<serde_json::Error as serde::de::Error>::custom("no such part"))
    };
    (@trip $text:ident $ty:ty) => { $crate::table::round_trip::<$ty>($text) };
}

macro_rules! lane {
    ($params:ident free) => {{
        let _ = $params;
        Lane::Free
    }};
    ($params:ident shared config) => {{
        let _ = $params;
        Lane::Shared(Resource::Config)
    }};
    ($params:ident config) => {{
        let _ = $params;
        Lane::Exclusive(Resource::Config)
    }};
    ($params:ident account) => {{
        let _ = $params;
        Lane::Exclusive(Resource::Account)
    }};
    ($params:ident thread($field:ident)) => {
        Lane::Exclusive(Resource::Thread($params.$field))
    };
    ($params:ident shared path($field:ident)) => {
        Lane::Shared(Resource::Path(plain_path(&$params.$field).into()))
    };
    ($params:ident path($field:ident)) => {
        Lane::Exclusive(Resource::Path(plain_path(&$params.$field).into()))
    };
    ($params:ident tree($field:ident)) => {
        Lane::Exclusive(Resource::Tree(plain_path(&$params.$field).into()))
    };
    ($params:ident shared tree($from:ident), tree($to:ident)) => {
        Lane::FromTo(
            Resource::Tree(plain_path(&$params.$from).into()),
            Resource::Tree(plain_path(&$params.$to).into()),
        )
    };
    ($params:ident process($field:ident)) => {
        Lane::Exclusive(Resource::Process($params.$field.as_str().into()))
    };
    ($params:ident watch($field:ident)) => {
        Lane::Exclusive(Resource::Watch($params.$field.as_str().into()))
    };
    ($params:ident search($field:ident)) => {
        Lane::Exclusive(Resource::Search($params.$field.as_str().into()))
    };
}

/// Declares the methods. A row says with `safe(…)` that observers may send the request (`reads`)
/// and that it may be sent again (`repeatable`). Without that, the gate rejects it from observers,
/// and clients do not repeat it without a `clientRequestId`.
///
/// The lane determines the node that serves a request: the owner of a thread for the lane of that
/// thread, the node that receives it for other lanes. A row that differs has `served_by(…)`.
macro_rules! methods {
    ($(
        $(#[doc = $doc:literal])+
        $name:literal => $method:ident $( ( $params:ident ) )? -> $result:ident,
            $tier:ident, $stability:ident, lane($($lane:tt)+) $(, safe($($safe:ident),+))? $(, served_by($node:ident))? $(, idempotency_key($id:ident))? $(, gated [$($gated:literal),+])? ;
    )+) => {
        $(
            $(#[doc = $doc])+
            #[derive(Clone, Copy, Debug)]
            pub struct $method;

            impl Method for $method {
                const NAME: &'static str = $name;
                type Params = methods!(@params $($params)?);
                type Result = $result;
                const TAKES_PARAMS: bool = methods!(@takes $($params)?);
                const STABILITY: Stability = Stability::$stability;
                const GATED: &'static [&'static str] = &[$($($gated),+)?];
                const HAS_IDEMPOTENCY_KEY: bool = methods!(@has_key $($id)?);
                const READS: bool = methods!(@reads $($($safe),+)?);
                const REPEATABLE: bool = methods!(@repeatable $($($safe),+)?);
                const SERVED_BY: ServedBy = methods!(@served_by [$($node)?] $($lane)+);

                fn lane(params: &Self::Params) -> Lane {
                    lane!(params $($lane)+)
                }

                fn client_request_id(params: &Self::Params) -> Option<&str> {
                    methods!(@id params $($id)?)
                }
            }
        )+

        /// Every request that a client may send, in reading order.
        pub const METHODS: &[MethodRow] = &[$(
            MethodRow {
                name: $name,
                params: methods!(@name $($params)?),
                result: stringify!($result),
                tier: Tier::$tier,
                stability: Stability::$stability,
                gated: &[$($($gated),+)?],
                lane: stringify!($($lane)+),
                reads: methods!(@reads $($($safe),+)?),
                repeatable: methods!(@repeatable $($($safe),+)?),
                has_idempotency_key: methods!(@has_key $($id)?),
                served_by: methods!(@served_by [$($node)?] $($lane)+),
                doc: concat!($($doc),+),
                shapes: shapes!($($params)? => $result),
            },
        )+];
    };
    (@id $params_of:ident) => {{
        let _ = $params_of;
        None
    }};
    (@id $params_of:ident $id:ident) => { $params_of.$id.as_deref() };
    (@has_key) => { false };
    (@has_key $id:ident) => { true };
    (@reads) => { false };
    (@reads reads) => { true };
    (@reads repeatable) => { false };
    (@reads reads, repeatable) => { true };
    (@repeatable) => { false };
    (@repeatable reads) => { false };
    (@repeatable repeatable) => { true };
    (@repeatable reads, repeatable) => { true };
    (@served_by [] thread($field:ident)) => { ServedBy::Owner };
    (@served_by [] $($lane:tt)+) => { ServedBy::AnyNode };
    (@served_by [loaded] thread($field:ident)) => { ServedBy::Loaded };
    (@served_by [any_node] thread($field:ident)) => { ServedBy::AnyNode };
    (@served_by [creator] $($lane:tt)+) => { ServedBy::Creator };
    (@served_by [subscription] thread($field:ident)) => { ServedBy::Subscription };
    (@params) => { NoParams };
    (@params $params:ident) => { $params };
    (@takes) => { false };
    (@takes $params:ident) => { true };
    (@name) => { None };
    (@name $params:ident) => { Some(stringify!($params)) };
}

macro_rules! server_requests {
    ($(
        $(#[doc = $doc:literal])+
        $name:literal => $method:ident ( $params:ident ) -> $result:ident;
    )+) => {
        $(
            $(#[doc = $doc])+
            #[derive(Clone, Copy, Debug)]
            pub struct $method;

            impl ServerMethod for $method {
                const NAME: &'static str = $name;
                type Params = $params;
                type Result = $result;
            }
        )+

        /// Every request that the server may send, in reading order.
        pub const SERVER_REQUESTS: &[ServerRequestRow] = &[$(
            ServerRequestRow {
                name: $name,
                params: stringify!($params),
                result: stringify!($result),
                doc: concat!($($doc),+),
                shapes: shapes!($params => $result),
            },
        )+];
    };
}

macro_rules! notifications {
    ($(
        $(#[doc = $doc:literal])+
        $name:literal => $variant:ident ( $params:ident ), $tier:ident, $stability:ident, $scope:ident;
    )+) => {
        /// A notification from the server.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Notification {
            $( $(#[doc = $doc])+ $variant($params), )+
        }

        impl Notification {
            /// Returns the name of the notification on the wire.
            pub fn method(&self) -> &'static str {
                match self { $( Self::$variant(_) => $name, )+ }
            }

            /// Returns the recipients of the notification.
            pub fn scope(&self) -> Scope {
                match self { $( Self::$variant(_) => Scope::$scope, )+ }
            }

            /// Reads the params of the named notification; returns `None` if the name is unknown.
            pub fn read(method: &str, params: &str) -> Option<Result<Self, serde_json::Error>> {
                Some(match method {
                    $( $name => serde_json::from_str(params).map(Self::$variant), )+
                    _ => return None,
                })
            }
        }

        impl serde::Serialize for Notification {
            /// Serializes the params only; the method name is sent beside them.
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self { $( Self::$variant(params) => params.serialize(serializer), )+ }
            }
        }

        $(
            impl From<$params> for Notification {
                fn from(params: $params) -> Self {
                    Self::$variant(params)
                }
            }
        )+

        /// Every notification that the server may send, in reading order.
        pub const NOTIFICATIONS: &[NotificationRow] = &[$(
            NotificationRow {
                name: $name,
                params: stringify!($params),
                tier: Tier::$tier,
                stability: Stability::$stability,
                scope: Scope::$scope,
                doc: concat!($($doc),+),
                shapes: shapes!($params =>),
            },
        )+];
    };
}

#[cfg(test)]
mod tests;
