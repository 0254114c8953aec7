pub(crate) mod set;
