//! The fence around a process.
//!
//! A [`Fence`] says how a [`Launch`] is started so that it can do no more than a [`Policy`] allows, and
//! refuses what it cannot enforce. How strong it is on this machine is measured, never assumed: see
//! [`measure`]. It does not know what a tool, a thread or a model is, and starts nothing but the
//! attempts with which it tests itself.
//!
//! The only crate of the product with `unsafe`, for system calls that no safe crate has.
//!
//! Below: the kernel, and bubblewrap where it is installed. Above: whoever runs commands.

mod fence;
mod launch;
mod policy;

pub use fence::attempt;
pub use fence::{
    Fence, Fenced, Finding, Measured, Options, Refused, Tier, find_bubblewrap, ignore_interrupts,
    measure, take_over,
};
pub use launch::Launch;
pub use policy::{Network, PROTECTED, Policy, Read, Rules, Tmp};
