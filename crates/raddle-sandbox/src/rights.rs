//! The rights of a sandboxed command, for work that the server does itself.

use std::io;
use std::marker::PhantomData;

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// The calling thread without capabilities, as a sandboxed command is: until this is dropped, the kernel
/// judges what it opens by owner and mode alone, also for root.
///
/// Only the effective set of this one thread changes, so the guard stays on its thread.
#[derive(Debug)]
pub struct LoweredRights {
    before: Option<CapabilitySets>,
    _stays: PhantomData<*const ()>,
}

impl LoweredRights {
    /// Takes the capabilities from the calling thread. Without any there is nothing to take.
    pub fn enter() -> io::Result<Self> {
        let now = capabilities(None)?;
        let before = (!now.effective.is_empty()).then_some(now);
        if before.is_some() {
            let lowered = CapabilitySets {
                effective: CapabilitySet::empty(),
                ..now
            };
            set_capabilities(None, lowered)?;
        }
        Ok(Self {
            before,
            _stays: PhantomData,
        })
    }
}

impl Drop for LoweredRights {
    fn drop(&mut self) {
        // What is permitted was kept, so this cannot be refused. If it were, the thread would only have fewer rights.
        if let Some(before) = self.before.take()
            && let Err(error) = set_capabilities(None, before)
        {
            tracing::error!(%error, "a thread does not get its capabilities back");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_no_capabilities_for_a_while() {
        let before = capabilities(None).expect("sets").effective;
        let lowered = LoweredRights::enter().expect("fewer rights");
        assert!(capabilities(None).expect("sets").effective.is_empty());
        {
            // Again inside: the outer one stays in force.
            let _again = LoweredRights::enter().expect("the same rights");
        }
        assert!(capabilities(None).expect("sets").effective.is_empty());
        let elsewhere = std::thread::spawn(|| std::fs::read("/proc/self/status").is_ok());
        assert!(elsewhere.join().expect("a thread"));
        drop(lowered);
        assert_eq!(capabilities(None).expect("sets").effective, before);
    }
}
