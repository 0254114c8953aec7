pub(crate) mod archive;
pub(crate) mod compact;
pub(crate) mod delete;
pub(crate) mod name;
pub(crate) mod settings;
pub(crate) mod start;
pub(crate) mod unarchive;
pub(crate) mod unsubscribe;
