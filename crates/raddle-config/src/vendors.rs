//! The vendors' interfaces other than model calls: lists of models, and sign-in.

use std::fmt;

use raddle_core::ports::BoxFuture;

use crate::providers::{Provider, Secret};

/// Client for the vendors' interfaces. Each error states what to do.
pub trait Vendors: Send + Sync + fmt::Debug {
    /// Returns the models that a provider offers.
    fn models<'a>(
        &'a self,
        provider: &'a Provider,
    ) -> BoxFuture<'a, Result<Vec<OfferedModel>, String>>;

    /// Returns how the user is signed in with a provider, if at all.
    fn account<'a>(
        &'a self,
        provider: &'a Provider,
    ) -> BoxFuture<'a, Result<Option<SignInKind>, String>>;

    /// Renews a token that can be renewed.
    fn renew<'a>(&'a self, provider: &'a Provider) -> BoxFuture<'a, Result<(), String>>;

    /// Signs in with a key, and stores it.
    fn store_key<'a>(
        &'a self,
        provider: &'a Provider,
        key: Secret,
    ) -> BoxFuture<'a, Result<(), String>>;

    /// Begins to sign in through the provider's pages.
    fn sign_in<'a>(
        &'a self,
        provider: &'a Provider,
        sign_in_method: SignInMethod,
    ) -> BoxFuture<'a, Result<PendingSignIn, String>>;

    /// Signs out: deletes the stored credentials.
    fn forget<'a>(&'a self, provider: &'a Provider) -> BoxFuture<'a, Result<(), String>>;
}

/// A model that a provider offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedModel {
    /// Its id in requests to the provider.
    pub id: String,
    /// Its name for people, if it differs.
    pub name: Option<String>,
}

/// The kind of credentials that a user is signed in with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignInKind {
    /// An API key that the user entered.
    Key,
    /// Tokens from the provider.
    Tokens,
}

/// A way to sign in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignInMethod {
    /// In a browser on this machine.
    Browser,
    /// With a code that the user enters on any device.
    Device,
}

/// A sign-in in progress.
pub struct PendingSignIn {
    /// The page to open.
    pub page: String,
    /// The code to enter on that page.
    pub code: Option<String>,
    /// Resolves when the sign-in has ended. Dropping it cancels the sign-in.
    pub done: BoxFuture<'static, Result<(), String>>,
}

impl fmt::Debug for PendingSignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PendingSignIn")
    }
}
