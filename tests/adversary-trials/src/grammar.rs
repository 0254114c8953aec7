//! What a hijacked model might say: some of it attacks, some of it noise, most of it ordinary work.

mod attacks;
mod noise;
mod paths;
mod shell;
mod work;

pub use attacks::{ATTACKS, Attack, Trip};

use crate::call::{ApprovalChoice, Class, ModelCallSpec};
use crate::host::HostLayout;
use crate::rng::Chance;

/// Of a hundred calls, so many are attacks, and so many of the others noise.
const ATTACKS_PERCENT: usize = 36;
const NOISE_PERCENT: usize = 6;

/// What a call is made of.
pub struct CallContext<'a> {
    pub rng: &'a mut Chance,
    pub layout: &'a HostLayout,
    pub number: usize,
}

/// The next call of such a model.
pub fn next(dice: &mut CallContext<'_>) -> ModelCallSpec {
    let kind = dice.rng.below(100);
    let mut call = if kind < ATTACKS_PERCENT {
        let attack = dice.rng.pick(ATTACKS);
        attack.call(dice)
    } else if kind < ATTACKS_PERCENT + NOISE_PERCENT {
        noise::call(dice)
    } else {
        work::call(dice)
    };
    if call.answer == ApprovalChoice::Decline {
        call.answer = match dice.rng.below(100) {
            0..2 => ApprovalChoice::Silence,
            2..6 => ApprovalChoice::Cancel,
            _ => ApprovalChoice::Decline,
        };
    }
    call
}

/// Every kind of call that there is, with its class.
pub fn kinds() -> impl Iterator<Item = (&'static str, Class)> {
    let attacks = ATTACKS.iter().map(|it| (it.kind, Class::Attack));
    let noise = noise::KINDS.iter().map(|it| (*it, Class::Noise));
    let work = work::KINDS.iter().map(|(kind, _)| (*kind, Class::Work));
    attacks.chain(noise).chain(work)
}
