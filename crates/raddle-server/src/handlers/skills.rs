pub(crate) mod config;
pub(crate) mod extra_roots;
pub(crate) mod list;
