pub(crate) mod reload;
