//! `command/*`

pub(crate) mod exec;
