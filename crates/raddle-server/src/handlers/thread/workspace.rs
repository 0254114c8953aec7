pub(crate) mod apply;
pub(crate) mod read;
