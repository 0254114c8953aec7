//! Lanes: what a request claims, so that its order is kept where order matters.

use crate::ThreadId;

/// What a request must not overtake. Two requests that claim the same resource run in the order they
/// came, unless both only read it.
///
/// What is promised of paths: requests for one path keep their order. What makes, removes or copies a
/// folder as a whole keeps its order with everything inside that folder too. A listing does not wait
/// for a write inside the folder, and a write does not wait for the folder's listing. Paths are
/// compared as text, after [`plain_path`]; that a link leads elsewhere is not looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lane {
    /// No claim: runs at once, beside everything else.
    Free,
    /// Beside other readers of the resource, after the writers that came before.
    Shared(Resource),
    /// Alone with the resource.
    Exclusive(Resource),
    /// Both: reads the first, changes the second.
    FromTo(Resource, Resource),
}

/// What a lane guards.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// The layered configuration.
    Config,
    /// Stored credentials.
    Account,
    /// One thread.
    Thread(ThreadId),
    /// One path of the file system, written plainly.
    Path(Box<str>),
    /// One path and everything below it, written plainly.
    Tree(Box<str>),
    /// One process of the connection.
    Process(Box<str>),
    /// One file watch of the connection.
    Watch(Box<str>),
    /// One search session of the connection.
    Search(Box<str>),
}

/// A path without doubled slashes, `.` and `..`, so that spellings of one path become one.
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
