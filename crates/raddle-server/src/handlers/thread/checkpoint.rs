pub(crate) mod list;
pub(crate) mod preview;
pub(crate) mod restore;
