pub(crate) mod interrupt;
pub(crate) mod start;
pub(crate) mod steer;
