pub(crate) mod write;
