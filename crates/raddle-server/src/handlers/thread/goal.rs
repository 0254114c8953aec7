pub(crate) mod clear;
pub(crate) mod get;
pub(crate) mod set;
