//! `raddle login` and `raddle logout`: the stored credentials of a model provider.

mod key_input;
mod status;

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use raddle_config::{KeySource, Override, Provider, Secret, SignIn, SignInMethod, Vendors};
use raddle_providers::VendorClient;
use tokio::runtime::Runtime;

use crate::app_server;
use crate::cli::{Login, Logout};
use crate::config;
use crate::home::Home;
use crate::log;
use crate::runtime;

/// The provider that means `--status`, as `codex login status` does.
const STATUS_WORD: &str = "status";

/// A provider, and the client that stores its credentials.
struct LoginTarget {
    provider: Provider,
    vendor_client: VendorClient,
    runtime: Runtime,
    /// The folder of the file with the credentials.
    folder: PathBuf,
}

/// Stores a key or a sign-in, or prints what is stored.
pub(crate) fn login(overrides: Vec<Override>, args: Login) -> Result<ExitCode> {
    let is_status = args.status || args.provider.as_deref() == Some(STATUS_WORD);
    if is_status && (args.device || args.with_api_key) {
        bail!("`raddle login status` takes neither --device nor --with-api-key; leave them out");
    }
    let provider = args.provider.filter(|it| it != STATUS_WORD);
    let target = LoginTarget::open(overrides, provider)?;
    if is_status {
        return status::print(&target);
    }
    // This process holds the key.
    app_server::disable_core_dumps()?;
    let sign_in = target.sign_in()?;
    let pages = sign_in.oauth.as_ref().filter(|_| !args.with_api_key);
    match pages {
        None if args.device => bail!(
            "the model provider `{0}` has no pages to sign in; describe them under [model_providers.{0}.oauth], or log in with a key",
            target.provider.name
        ),
        None => target.store_key()?,
        Some(pages) if args.device || pages.authorize_url.is_none() => {
            target.sign_in_with(SignInMethod::Device)?;
        }
        Some(_) => target.sign_in_with(SignInMethod::Browser)?,
    }
    let name = &target.provider.name;
    log::print_line(&format!(
        "logged in to `{name}`; running servers use it too"
    ));
    Ok(ExitCode::SUCCESS)
}

/// Deletes the stored credentials, also those of a provider that is not configured any more or has
/// its key from elsewhere now.
pub(crate) fn logout(overrides: Vec<Override>, args: Logout) -> Result<ExitCode> {
    let (target, unknown) = LoginTarget::find(overrides, args.provider)?;
    let name = &target.provider.name;
    let client = &target.vendor_client;
    let is_removed = target.runtime.block_on(client.forget(&target.provider))?;
    if !is_removed {
        if let Some(error) = unknown {
            return Err(error);
        }
        log::print_line(&format!("no credentials of `{name}` are stored"));
        return Ok(ExitCode::SUCCESS);
    }
    log::print_line(&format!("removed the credentials of `{name}`"));
    if let KeySource::Stored(SignIn {
        variable: Some(variable),
        ..
    }) = &target.provider.key
        && status::is_set(variable)
    {
        log::print_line(&format!(
            "{variable} is set, so servers with that variable use its key; unset it too"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a key or a sign-in of each provider is stored. Credentials that cannot be read count as
/// missing; a model call reports why.
pub(crate) fn logged_in(home: &Home, providers: &[Provider]) -> Result<Vec<bool>> {
    let runtime = runtime::current_thread()?;
    let _entered = runtime.enter();
    let vendor_client = VendorClient::new(&home.state, None);
    let is_logged_in = |provider: &Provider| {
        let account = runtime.block_on(vendor_client.account(provider));
        account.is_ok_and(|it| it.is_some())
    };
    Ok(providers.iter().map(is_logged_in).collect())
}

impl LoginTarget {
    /// Finds the provider: the named one, else the configured one.
    fn open(overrides: Vec<Override>, name: Option<String>) -> Result<Self> {
        match Self::find(overrides, name)? {
            (target, None) => Ok(target),
            (_, Some(unknown)) => Err(unknown),
        }
    }

    /// Finds the provider. One that is not configured has only its name, and comes with the error
    /// about that.
    fn find(
        overrides: Vec<Override>,
        name: Option<String>,
    ) -> Result<(Self, Option<anyhow::Error>)> {
        let home = Home::find()?;
        let config = config::open(&home, overrides)?;
        let name = name.or_else(|| config.default_model().1);
        let name = name.context(
            "no model provider is configured; name one, as in `raddle login anthropic`, or choose one with `raddle init`",
        )?;
        let (provider, unknown) = match config.provider(&name) {
            Ok(provider) => (provider, None),
            Err(error) => {
                let provider = Provider {
                    name,
                    ..Provider::default()
                };
                (provider, Some(error.into()))
            }
        };
        let runtime = runtime::current_thread()?;
        let vendor_client = {
            let _entered = runtime.enter();
            VendorClient::new(&home.state, None)
        };
        let target = Self {
            provider,
            vendor_client,
            runtime,
            folder: home.state,
        };
        Ok((target, unknown))
    }

    /// Returns the sign-in of the provider, or an error if its key comes from elsewhere.
    fn sign_in(&self) -> Result<&SignIn> {
        let name = &self.provider.name;
        match &self.provider.key {
            KeySource::Stored(sign_in) => Ok(sign_in),
            KeySource::None => bail!(
                "the model provider `{name}` takes no key; if it should, set requires_openai_auth = true under [model_providers.{name}]"
            ),
            _ => bail!(
                "the configuration says where the key of `{name}` is; remove that under [model_providers.{name}] to log in"
            ),
        }
    }

    fn store_key(&self) -> Result<()> {
        let key = key_input::read(&format!("key of {}: ", self.provider.name))?;
        let key = key.trim();
        ensure!(!key.is_empty(), "the key is empty; nothing was stored");
        ensure!(
            !key.contains(|it: char| it.is_whitespace() || it.is_control()),
            "the key has spaces, line ends or control characters; give only the key. Nothing was stored"
        );
        self.make_folder()?;
        let key = Secret(key.to_owned());
        let stored = self.vendor_client.store_key(&self.provider, key);
        Ok(self.runtime.block_on(stored)?)
    }

    /// Signs in through the provider's pages.
    fn sign_in_with(&self, method: SignInMethod) -> Result<()> {
        self.make_folder()?;
        let pending = self.vendor_client.sign_in(&self.provider, method);
        let pending = self.runtime.block_on(pending)?;
        log::print_line(&format!("open this page: {}", pending.page));
        if let Some(code) = &pending.code {
            log::print_line(&format!("enter this code there: {code}"));
        }
        Ok(self.runtime.block_on(pending.done)?)
    }

    /// Creates the folder of the credentials, which a server has not created yet on a new machine.
    fn make_folder(&self) -> Result<()> {
        let folder = &self.folder;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .with_context(|| format!("cannot make {}", folder.display()))
    }
}
