//! Files generated from the tables: JSON Schema, TypeScript types and the reference pages.
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
    /// Path below the directory that the user named, with `/` as separator.
    pub path: String,
    /// Complete content, with a newline at the end.
    pub text: String,
}
