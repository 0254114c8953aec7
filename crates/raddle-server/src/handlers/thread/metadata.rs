pub(crate) mod update;
