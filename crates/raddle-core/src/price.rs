//! Prices of a model's tokens.

use crate::Usage;

/// Price of a model's tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// Rates of an ordinary call.
    pub usual: Rates,
    /// Threshold of input tokens above which other rates apply, and those rates.
    pub long: Option<(u64, Rates)>,
}

/// Millionths of a dollar for a million tokens. The numbers are whole, because sums of money are
/// not rounded on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Rate of input tokens.
    pub input: u64,
    /// Rate of input tokens read from the vendor's cache.
    pub cached: u64,
    /// Rate of input tokens written to the vendor's cache.
    pub cache_written: u64,
    /// Rate of output tokens, reasoning included.
    pub output: u64,
}

impl Price {
    /// Returns the cost of a call, in billionths of a dollar.
    pub fn of(&self, usage: &Usage) -> u64 {
        let rates = match self.long {
            Some((above, rates)) if usage.input > above => rates,
            _ => self.usual,
        };
        let cache_tokens = usage.cached.saturating_add(usage.cache_written);
        let sum = [
            (usage.input.saturating_sub(cache_tokens), rates.input),
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

    /// $2 for input, $0.20 from the cache, $2.50 into it, $10 for output; twice that above 1000
    /// tokens.
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
            // Cached tokens that a vendor counts in addition to the input are not charged twice,
            // and the rest is never negative.
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
