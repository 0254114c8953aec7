pub(crate) mod call;
pub(crate) mod installed;
pub(crate) mod list;
pub(crate) mod read;
pub(crate) mod uninstall;
