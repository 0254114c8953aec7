//! What is generated from the tables: JSON Schema, TypeScript types and the reference pages.
//!
//! Everything here is a pure function from the tables to files; the binary writes them.

mod catalog;
mod envelope;
mod reference;
mod schema;
#[cfg(test)]
mod tests;
mod typescript;

pub use reference::reference;
pub use schema::json_schema;
pub use typescript::typescript;

/// A generated file, not yet written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Where it goes, below the folder the user named; `/` between folders.
    pub path: String,
    /// All of it, with a newline at the end.
    pub text: String,
}
