//! The rights of a sandboxed command, for work that the server does itself.

use std::io;
use std::marker::PhantomData;

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

/// The calling thread without capabilities, like a sandboxed command: until this is dropped, the
/// kernel checks what it opens by owner and mode alone, even for root.
///
/// Only the effective set of this one thread changes, so the guard stays on its thread.
#[derive(Debug)]
pub struct LoweredRights {
    saved: Option<CapabilitySets>,
    _not_send: PhantomData<*const ()>,
}

impl LoweredRights {
    /// Drops the effective capabilities of the calling thread; does nothing if it has none.
    pub fn enter() -> io::Result<Self> {
        let now = capabilities(None)?;
        let saved = (!now.effective.is_empty()).then_some(now);
        if saved.is_some() {
            let lowered = CapabilitySets {
                effective: CapabilitySet::empty(),
                ..now
            };
            set_capabilities(None, lowered)?;
        }
        Ok(Self {
            saved,
            _not_send: PhantomData,
        })
    }
}

impl Drop for LoweredRights {
    fn drop(&mut self) {
        // The permitted set was kept, so the kernel cannot refuse this. If it did, the thread would
        // only have fewer rights.
        if let Some(saved) = self.saved.take()
            && let Err(error) = set_capabilities(None, saved)
        {
            tracing::error!(%error, "cannot restore the capabilities of a thread");
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
            // Nested: the outer guard stays in force.
            let _again = LoweredRights::enter().expect("the same rights");
        }
        assert!(capabilities(None).expect("sets").effective.is_empty());
        let elsewhere = std::thread::spawn(|| std::fs::read("/proc/self/status").is_ok());
        assert!(elsewhere.join().expect("a thread"));
        drop(lowered);
        assert_eq!(capabilities(None).expect("sets").effective, before);
    }
}
