//! Patches in the form that models of one family write, applied to files.
