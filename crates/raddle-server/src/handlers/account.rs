pub(crate) mod login;
pub(crate) mod logout;
pub(crate) mod rate_limits;
pub(crate) mod read;
