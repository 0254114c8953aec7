pub(crate) mod oauth;
pub(crate) mod resource;
pub(crate) mod tool;
