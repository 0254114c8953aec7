pub(crate) mod add;
pub(crate) mod delete;
pub(crate) mod list;
pub(crate) mod reorder;
pub(crate) mod start;
pub(crate) mod update;
