//! Command lines taken apart: what a policy judges, and what is shown to people.
