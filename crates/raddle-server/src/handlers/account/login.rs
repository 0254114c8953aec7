pub(crate) mod cancel;
pub(crate) mod start;
