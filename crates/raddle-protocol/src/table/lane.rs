//! Lanes: the resources that a request claims, so that requests keep their order where it matters.

use crate::ThreadId;

/// Claim of a request on a resource. Two requests that claim the same resource run in the order in
/// which they arrived, unless both only read it.
///
/// Requests for the same path keep their order. Requests that create, remove or copy a whole
/// directory also keep their order with requests for anything inside it. A listing does not wait
/// for a write inside the directory, and a write does not wait for the directory's listing. Paths
/// are compared as text, after [`plain_path`]; symbolic links are not resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lane {
    /// No claim: runs immediately, concurrently with all other requests.
    Free,
    /// Runs concurrently with other readers of the resource, after earlier writers.
    Shared(Resource),
    /// Runs alone with the resource.
    Exclusive(Resource),
    /// Reads the first resource and changes the second.
    FromTo(Resource, Resource),
}

/// Resource that a lane protects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// The layered configuration of the server.
    Config,
    /// The stored credentials of the account.
    Account,
    /// A single thread.
    Thread(ThreadId),
    /// One path of the file system, normalised.
    Path(Box<str>),
    /// One path and everything below it, normalised.
    Tree(Box<str>),
    /// One process of the connection.
    Process(Box<str>),
    /// One file watch of the connection.
    Watch(Box<str>),
    /// One search session of the connection.
    Search(Box<str>),
}

/// Returns the path without doubled slashes, `.` and `..`, so that different spellings of one path
/// become equal.
///
/// ```
/// assert_eq!(raddle_protocol::table::plain_path("/a//b/./c/../d/"), "/a/b/d");
/// assert_eq!(raddle_protocol::table::plain_path("/.."), "/");
/// ```
pub fn plain_path(path: &str) -> String {
    let mut plain = String::with_capacity(path.len());
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => plain.truncate(plain.rfind('/').unwrap_or(0)),
            name => {
                plain.push('/');
                plain.push_str(name);
            }
        }
    }
    if plain.is_empty() {
        plain.push('/');
    }
    plain
}
