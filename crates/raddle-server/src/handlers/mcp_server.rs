pub(crate) mod resource;
pub(crate) mod tool;
