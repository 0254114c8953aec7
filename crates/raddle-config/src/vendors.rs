//! The vendors' interfaces other than model calls: lists of models, and sign-in.

use std::error::Error;
use std::fmt;

use raddle_core::ports::BoxFuture;

use crate::providers::{Provider, Secret};

/// Client for the vendors' interfaces. Each error states what to do.
pub trait Vendors: Send + Sync + fmt::Debug {
    /// Returns the models that a provider offers.
    fn models<'a>(
        &'a self,
        provider: &'a Provider,
    ) -> BoxFuture<'a, Result<Vec<OfferedModel>, VendorRequestError>>;

    /// Returns how the user is signed in with a provider, if at all.
    fn account<'a>(
        &'a self,
        provider: &'a Provider,
    ) -> BoxFuture<'a, Result<Option<SignInKind>, VendorRequestError>>;

    /// Renews a token that can be renewed.
    fn renew<'a>(&'a self, provider: &'a Provider)
    -> BoxFuture<'a, Result<(), VendorRequestError>>;

    /// Signs in with a key, and stores it.
    fn store_key<'a>(
        &'a self,
        provider: &'a Provider,
        key: Secret,
    ) -> BoxFuture<'a, Result<(), VendorRequestError>>;

    /// Begins to sign in through the provider's pages.
    fn sign_in<'a>(
        &'a self,
        provider: &'a Provider,
        sign_in_method: SignInMethod,
    ) -> BoxFuture<'a, Result<PendingSignIn, VendorRequestError>>;

    /// Signs out: deletes the credentials stored under the name of the provider, even if it uses
    /// them no longer. Returns whether there were any.
    fn forget<'a>(
        &'a self,
        provider: &'a Provider,
    ) -> BoxFuture<'a, Result<bool, VendorRequestError>>;
}

/// Reason why a request to a vendor failed. Its text says what to do.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct VendorRequestError(Box<dyn Error + Send + Sync>);

impl VendorRequestError {
    /// Builds the error from its cause, or from a text.
    pub fn new(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(cause.into())
    }
}

impl From<String> for VendorRequestError {
    fn from(text: String) -> Self {
        Self::new(text)
    }
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
    pub done: BoxFuture<'static, Result<(), VendorRequestError>>,
}

impl fmt::Debug for PendingSignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PendingSignIn")
    }
}
