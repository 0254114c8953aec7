//! Tests that every store passes.
//!
//! A store is one [`StoreMaker`] and one line, [`tests!`], which makes a test of each function here.
//! The tests of fencing and of forks run on one handle and on two: a server has one handle of a
//! store, and another node has its own.
//!
//! Below: `raddle-core`. Above: the tests of the stores.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

/// Lists the tests of a module. A test that is not in the list is dead code.
///
/// Makes a macro with the name of the module, for [`tests!`]. It makes a test of each, for the type
/// `Maker` of the module around it.
macro_rules! suite {
    ($module:ident: $($name:ident),* $(,)?) => {
        #[doc(hidden)]
        pub mod listed {
            $(
                pub async fn $name<M: crate::StoreMaker>() {
                    super::$name(M::fresh().await).await;
                }
            )*
        }

        #[doc(hidden)]
        #[macro_export]
        macro_rules! $module {
            () => {
                $(
                    #[tokio::test]
                    async fn $name() {
                        store_suite::$module::listed::$name::<super::Maker>().await;
                    }
                )*
            };
        }
    };
    ($module:ident, on one handle and on two: $($name:ident),* $(,)?) => {
        #[doc(hidden)]
        pub mod listed {
            $(
                pub async fn $name<M: crate::StoreMaker>(is_shared: bool) {
                    let maker = M::fresh().await;
                    super::$name(crate::Handles::new(maker, is_shared).await).await;
                }
            )*
        }

        #[doc(hidden)]
        #[macro_export]
        macro_rules! $module {
            () => {
                mod one_handle {
                    $(
                        #[tokio::test]
                        async fn $name() {
                            store_suite::$module::listed::$name::<super::super::Maker>(false).await;
                        }
                    )*
                }
                mod two_handles {
                    $(
                        #[tokio::test]
                        async fn $name() {
                            store_suite::$module::listed::$name::<super::super::Maker>(true).await;
                        }
                    )*
                }
            };
        }
    };
}

pub mod activity;
pub mod blobs;
pub mod fencing;
pub mod fork_deletion;
pub mod fork_views;
pub mod forks;
pub mod lists;
pub mod model;
pub mod reading;
pub mod records;
pub mod reopening;
pub mod scope;
pub mod search;
pub mod turns;

use raddle_core::ports::{Blobs, Journal, Pages};

/// Makes the whole suite for a maker: a module with a test of each function.
///
/// The crate that uses it depends on `tokio` with its macros, and has the maker in scope.
#[macro_export]
macro_rules! tests {
    (mod $name:ident, $maker:ident) => {
        mod $name {
            use super::$maker as Maker;

            mod activity {
                $crate::activity!();
            }
            mod blobs {
                $crate::blobs!();
            }
            mod fencing {
                $crate::fencing!();
            }
            mod fork_deletion {
                $crate::fork_deletion!();
            }
            mod fork_views {
                $crate::fork_views!();
            }
            mod forks {
                $crate::forks!();
            }
            mod lists {
                $crate::lists!();
            }
            mod reading {
                $crate::reading!();
            }
            mod reopening {
                $crate::reopening!();
            }
            mod scope {
                $crate::scope!();
            }
            mod search {
                $crate::search!();
            }
            mod turns {
                $crate::turns!();
            }
        }
    };
}

/// All ports of a store.
pub trait Store: Journal + Pages + Blobs {}

impl<T: Journal + Pages + Blobs> Store for T {}

/// Makes stores for tests. When it is dropped, everything that it made may be removed.
pub trait StoreMaker: Sized {
    /// The store.
    type Store: Store;

    /// Makes an empty store that no other test uses.
    fn fresh() -> impl Future<Output = Self>;

    /// Returns the first handle of the store.
    fn store(&self) -> &Self::Store;

    /// Opens another handle of the same store, as another process or node would.
    fn second_handle(&self) -> impl Future<Output = Self::Store>;

    /// Closes the store, and opens it again.
    fn reopen(self) -> impl Future<Output = Self>;

    /// Waits until search finds everything that was stored, and until unused blobs are deleted.
    fn settle(&self) -> impl Future<Output = ()>;
}

/// Two handles of one store, for a writer and for another node. In a test on one handle they are the
/// same.
pub(crate) struct Handles<M: StoreMaker> {
    // Closed before the maker removes the store.
    second: Option<M::Store>,
    maker: M,
}

impl<M: StoreMaker> Handles<M> {
    async fn new(maker: M, is_shared: bool) -> Self {
        let second = match is_shared {
            true => Some(maker.second_handle().await),
            false => None,
        };
        Self { second, maker }
    }

    /// Returns the handle of the writer.
    pub(crate) fn first(&self) -> &M::Store {
        self.maker.store()
    }

    /// Returns the handle of the rival, the reader or the node that forks.
    pub(crate) fn second(&self) -> &M::Store {
        self.second.as_ref().unwrap_or(self.maker.store())
    }

    /// See [`StoreMaker::settle`].
    pub(crate) async fn settle(&self) {
        self.maker.settle().await;
    }
}
