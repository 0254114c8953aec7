pub(crate) mod capabilities;
