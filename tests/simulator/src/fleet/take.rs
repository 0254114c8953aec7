//! How a node takes a thread: it seals the log of the former node, and copies the deltas that only
//! this log has.

use std::rc::Rc;

use raddle_core::{Bug, Seq};

use super::journal::NodeJournal;
use super::{Commit, QueryFailure, Response, Statement};

/// Maximum number of attempts while other nodes write to the thread.
const ATTEMPTS_MAX: usize = 8;

impl NodeJournal {
    /// Takes a thread from the node that owned it, if it is still the owner. Returns the head.
    pub(super) async fn take(
        &self,
        thread: usize,
        former: Option<&str>,
    ) -> Result<Seq, QueryFailure> {
        if self.is_in_doubt(thread) {
            self.settle(thread).await?;
        }
        self.resolve(thread).await?;
        for _ in 0..ATTEMPTS_MAX {
            if let Some(head) = self.take_ungathered(thread).await? {
                return Ok(head);
            }
            let mut state = self.load(thread).await?;
            if !state.row.is_live {
                return Ok(Seq::ZERO);
            }
            let Some(log) = state.row.writer else {
                continue;
            };
            if log != self.position().0 {
                if former.is_some() && former == state.row.owner.as_deref() {
                    let commit = match Bug::SealNotSynchronous.is_planted() {
                        true => Commit::Nothing,
                        false => Commit::Standby,
                    };
                    if !Bug::LogNotSealed.is_planted() {
                        self.port.query(Statement::Seal(log), commit).await?;
                    }
                } else {
                    let sealed = Statement::IsSealed(log);
                    let sealed = self.port.query(sealed, Commit::Nothing).await?;
                    if !matches!(sealed, Response::Moved(true)) {
                        // Another node took it first, and its records show that.
                        return Ok(state.newest());
                    }
                }
                // A batch may have been stored before the seal.
                state = self.load_row(thread).await?;
                if state.row.writer != Some(log) {
                    continue;
                }
            }
            let newest = state.newest();
            let copy = Statement::Copy(thread, state.row, Rc::new(state.gathered));
            let copied = self.port.query(copy, Commit::Standby).await?;
            if matches!(copied, Response::Moved(true)) {
                self.states.borrow_mut().remove(&thread);
                self.log.borrow_mut().holds.remove(&thread);
                return Ok(newest);
            }
        }
        Err(QueryFailure::NotSent)
    }

    /// Takes a thread of which no node log has deltas.
    async fn take_ungathered(&self, thread: usize) -> Result<Option<Seq>, QueryFailure> {
        let statement = Statement::TakeUngathered(thread);
        let taken = self.port.query(statement, Commit::Standby).await?;
        self.states.borrow_mut().remove(&thread);
        match taken {
            Response::Head(head) => Ok(head),
            _ => Ok(None),
        }
    }
}
