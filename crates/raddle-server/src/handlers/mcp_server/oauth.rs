pub(crate) mod login;
