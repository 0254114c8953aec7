//! Which part of a journal no longer counts, because the thread went back.

use raddle_core::Seq;

/// Stretches that do not count, in rising order and apart from each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RevertedRanges(Vec<RevertedRange>);

/// From its first number up to, not including, the record that cut it away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RevertedRange {
    from: Seq,
    until: Seq,
}

impl RevertedRanges {
    /// Everything from a number on was cut away by the record `by`.
    pub(crate) fn revert(&mut self, from: Seq, by: Seq) {
        while self.0.pop_if(|cut| cut.from >= from).is_some() {}
        match self.0.last_mut() {
            Some(last) if last.until >= from => last.until = by,
            _ => self.0.push(RevertedRange { from, until: by }),
        }
    }

    pub(crate) fn holds(&self, seq: Seq) -> bool {
        self.0.iter().any(|cut| cut.from <= seq && seq < cut.until)
    }

    /// What counts, in rising order: from the first number to before the second.
    pub(crate) fn live_ranges(&self) -> Vec<(Seq, Seq)> {
        let mut kept = Vec::with_capacity(self.0.len() + 1);
        let mut from = Seq::ZERO;
        for cut in &self.0 {
            kept.push((from, cut.from));
            from = cut.until;
        }
        kept.push((from, Seq(u64::MAX)));
        kept
    }
}
