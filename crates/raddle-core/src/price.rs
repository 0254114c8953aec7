//! What a model's tokens cost.

use crate::Usage;

/// What a model's tokens cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// Usually.
    pub usual: Rates,
    /// For a call that reads more than this many tokens, if that is another price.
    pub long: Option<(u64, Rates)>,
}

/// Millionths of a dollar for a million tokens, which is a millionth of a cent's hundredth each: whole numbers,
/// because sums of money are not rounded on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Tokens that the model reads.
    pub input: u64,
    /// Those of them that the vendor had kept.
    pub cached: u64,
    /// Those of them that the vendor keeps for later.
    pub cache_written: u64,
    /// Tokens that it writes, reasoning included.
    pub output: u64,
}

impl Price {
    /// What a call cost, in billionths of a dollar.
    pub fn of(&self, usage: &Usage) -> u64 {
        let rates = match self.long {
            Some((above, rates)) if usage.input > above => rates,
            _ => self.usual,
        };
        let kept = usage.cached.saturating_add(usage.cache_written);
        let sum = [
            (usage.input.saturating_sub(kept), rates.input),
            (usage.cached, rates.cached),
            (usage.cache_written, rates.cache_written),
            (usage.output, rates.output),
        ];
        let sum: u128 = sum
            .iter()
            .map(|(tokens, rate)| u128::from(*tokens) * u128::from(*rate))
            .sum();
        u64::try_from(sum.div_ceil(1000)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// $2 to read, $0.20 from the cache, $2.50 into it, $10 to write; twice that above 1000 tokens.
    #[test]
    fn a_call_costs_what_its_tokens_cost() {
        let usual = Rates {
            input: 2_000_000,
            cached: 200_000,
            cache_written: 2_500_000,
            output: 10_000_000,
        };
        let twice = Rates {
            input: 4_000_000,
            cached: 400_000,
            cache_written: 5_000_000,
            output: 20_000_000,
        };
        let price = Price {
            usual,
            long: Some((1000, twice)),
        };
        for (input, cached, cache_written, output, cost) in [
            (0, 0, 0, 0, 0),
            (1000, 0, 0, 0, 2_000_000),
            (1001, 0, 0, 0, 4_004_000),
            (1000, 400, 100, 10, 1_000_000 + 80_000 + 250_000 + 100_000),
            // A vendor that counts what it kept beside what was sent is not paid for it twice, nor less than nothing.
            (10, 20, 0, 0, 4_000),
            (u64::MAX, 0, 0, u64::MAX, u64::MAX),
        ] {
            let usage = Usage {
                input,
                cached,
                cache_written,
                output,
                reasoning: 0,
            };
            assert_eq!(price.of(&usage), cost, "{usage:?}");
        }
    }
}
