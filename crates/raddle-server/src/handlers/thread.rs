pub(crate) mod items;
pub(crate) mod list;
pub(crate) mod loaded;
pub(crate) mod read;
pub(crate) mod search;
pub(crate) mod start;
pub(crate) mod turns;
