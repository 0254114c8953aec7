//! The command line of `raddle login` and `raddle logout`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

#[derive(Debug, Args)]
pub(crate) struct Login {
    /// Print whether a key or a sign-in is there, without showing it; exit status 1 if none is
    #[arg(long, conflicts_with_all = ["with_api_key", "device"])]
    pub(crate) status: bool,

    /// Store a key, even if the provider has pages to sign in
    #[arg(long, conflicts_with = "device")]
    pub(crate) with_api_key: bool,

    /// Sign in with a code that you enter on a page, on any device
    #[arg(long, alias = "device-auth")]
    pub(crate) device: bool,

    /// Provider; by default the configured one
    #[arg(value_name = "PROVIDER", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) provider: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Logout {
    /// Provider; by default the configured one
    #[arg(value_name = "PROVIDER", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) provider: Option<String>,
}
