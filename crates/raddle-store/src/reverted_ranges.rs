//! Ranges of a journal that were reverted and no longer count.

use raddle_core::Seq;

/// Reverted ranges, ascending and disjoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RevertedRanges(Vec<RevertedRange>);

/// Range from its first number up to, not including, the record that reverted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RevertedRange {
    from: Seq,
    until: Seq,
}

impl RevertedRanges {
    /// Reverts everything from a number on, by the record `by`.
    pub(crate) fn revert(&mut self, from: Seq, by: Seq) {
        while self.0.pop_if(|range| range.from >= from).is_some() {}
        match self.0.last_mut() {
            Some(last) if last.until >= from => last.until = by,
            _ => self.0.push(RevertedRange { from, until: by }),
        }
    }

    pub(crate) fn holds(&self, seq: Seq) -> bool {
        self.0
            .iter()
            .any(|range| range.from <= seq && seq < range.until)
    }

    /// Returns the ranges that count, ascending: from the first number to before the second.
    pub(crate) fn live_ranges(&self) -> Vec<(Seq, Seq)> {
        let mut live = Vec::with_capacity(self.0.len() + 1);
        let mut from = Seq::ZERO;
        for range in &self.0 {
            live.push((from, range.from));
            from = range.until;
        }
        live.push((from, Seq(u64::MAX)));
        live
    }
}
