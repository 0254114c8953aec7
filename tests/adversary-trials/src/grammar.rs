//! Generates the calls of a hijacked model: attacks, noise, and mostly ordinary work.

mod attacks;
mod noise;
mod paths;
mod shell;
mod work;

pub use attacks::{ATTACKS, Attack, Trip};

use support::Rng;

use crate::call::{ApprovalChoice, Class, ModelCallSpec};
use crate::host::HostLayout;

/// Percentages of attacks and of noise among the calls.
const ATTACKS_PERCENT: u64 = 36;
const NOISE_PERCENT: u64 = 6;

/// Inputs of a generated call.
pub struct CallContext<'a> {
    pub rng: &'a mut Rng,
    pub layout: &'a HostLayout,
    pub number: usize,
}

/// Generates the next call of such a model.
pub fn next(context: &mut CallContext<'_>) -> ModelCallSpec {
    let kind = context.rng.below(100);
    let mut call = if kind < ATTACKS_PERCENT {
        let attack = context.rng.pick(ATTACKS);
        attack.call(context)
    } else if kind < ATTACKS_PERCENT + NOISE_PERCENT {
        noise::call(context)
    } else {
        work::call(context)
    };
    if call.answer == ApprovalChoice::Decline {
        call.answer = match context.rng.below(100) {
            0..2 => ApprovalChoice::Silence,
            2..6 => ApprovalChoice::Cancel,
            _ => ApprovalChoice::Decline,
        };
    }
    call
}

/// Returns every kind of call, with its class.
pub fn kinds() -> impl Iterator<Item = (&'static str, Class)> {
    let attacks = ATTACKS.iter().map(|it| (it.kind, Class::Attack));
    let noise = noise::KINDS.iter().map(|it| (*it, Class::Noise));
    let work = work::KINDS.iter().map(|(kind, _)| (*kind, Class::Work));
    attacks.chain(noise).chain(work)
}
