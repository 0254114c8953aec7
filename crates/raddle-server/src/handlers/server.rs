pub(crate) mod diagnostics;
