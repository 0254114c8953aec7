pub(crate) mod call;
