pub(crate) mod diff;
pub(crate) mod interrupt;
pub(crate) mod settings;
pub(crate) mod start;
pub(crate) mod steer;
