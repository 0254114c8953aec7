pub(crate) mod batch_write;
pub(crate) mod read;
pub(crate) mod value;
