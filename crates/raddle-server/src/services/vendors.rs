//! What is wanted of vendors beside answers: which models they have, and to be signed in with them.

use std::fmt;

use raddle_core::ports::BoxFuture;

use super::providers::{Provider, Secret};

/// The vendors, as whoever speaks to them sees them. Each error says what to do.
pub trait Vendors: Send + Sync + fmt::Debug {
    /// The models that a provider says it has.
    fn models<'a>(
        &'a self,
        provider: &'a Provider,
    ) -> BoxFuture<'a, Result<Vec<OfferedModel>, String>>;

    /// How someone is signed in with a provider, if someone is.
    fn account<'a>(
        &'a self,
        provider: &'a Provider,
    ) -> BoxFuture<'a, Result<Option<SignInKind>, String>>;

    /// Has a token that can be renewed renewed.
    fn renew<'a>(&'a self, provider: &'a Provider) -> BoxFuture<'a, Result<(), String>>;

    /// Signs in with a key, which is kept.
    fn keep<'a>(&'a self, provider: &'a Provider, key: Secret)
    -> BoxFuture<'a, Result<(), String>>;

    /// Begins to sign in through pages of the provider's.
    fn sign_in<'a>(
        &'a self,
        provider: &'a Provider,
        way: SignInMethod,
    ) -> BoxFuture<'a, Result<PendingSignIn, String>>;

    /// Signs out: what is kept is forgotten.
    fn forget<'a>(&'a self, provider: &'a Provider) -> BoxFuture<'a, Result<(), String>>;
}

/// A model that a provider has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedModel {
    /// What to ask for.
    pub id: String,
    /// Its name for people, if it has another.
    pub name: Option<String>,
}

/// How someone is signed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignInKind {
    /// With a key.
    Key,
    /// With tokens that the provider gave.
    Tokens,
}

/// A way to sign in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignInMethod {
    /// In a browser on this machine.
    Browser,
    /// With a code that is entered anywhere.
    Device,
}

/// A sign-in that has begun.
pub struct PendingSignIn {
    /// The page to open.
    pub page: String,
    /// The code to enter there.
    pub code: Option<String>,
    /// Ends when it has ended. Dropping it gives it up.
    pub done: BoxFuture<'static, Result<(), String>>,
}

impl fmt::Debug for PendingSignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningIn")
    }
}
