pub(crate) mod installed;
pub(crate) mod list;
