pub(crate) mod start;
