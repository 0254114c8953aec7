pub(crate) mod clean;
pub(crate) mod list;
pub(crate) mod terminate;
