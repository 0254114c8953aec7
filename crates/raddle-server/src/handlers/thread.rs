pub(crate) mod archive;
pub(crate) mod delete;
pub(crate) mod name;
pub(crate) mod start;
pub(crate) mod unarchive;
pub(crate) mod unsubscribe;
