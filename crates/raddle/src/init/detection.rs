//! Providers that can be used on this machine as it is: by a stored key or one in the environment,
//! or because their server runs here.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use raddle_config::{KeySource, Preset, Provider, SignIn, Vendors, presets};
use raddle_providers::VendorClient;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::home::Home;
use crate::login;
use crate::runtime;

/// How long a server on this machine may take to list its models.
const LOCAL_TIMEOUT: Duration = Duration::from_millis(500);

/// How long a vendor may take to list its models.
const VENDOR_TIMEOUT: Duration = Duration::from_secs(5);

/// A provider that can be used as it is.
#[derive(Debug)]
pub(super) struct UsableProvider {
    pub(super) preset: &'static Preset,
    /// Whether `raddle login` stored its key.
    pub(super) is_logged_in: bool,
    /// Models of a server on this machine. Those of a vendor are not requested before the user
    /// chooses it.
    pub(super) models: Vec<String>,
}

impl UsableProvider {
    /// Returns the providers with a key, then those on this machine.
    pub(super) fn find(home: &Home) -> Result<Vec<Self>> {
        let with_key = with_key(home)?.into_iter();
        let local: Vec<&'static Preset> = presets().iter().filter(|it| is_local(it)).collect();
        let models = model_names(home, &local, LOCAL_TIMEOUT)?;
        let local = local.into_iter().zip(models);
        let local = local.map(|(preset, models)| Self {
            preset,
            is_logged_in: false,
            models,
        });
        Ok(with_key
            .chain(local.filter(|it| !it.models.is_empty()))
            .collect())
    }

    /// Returns the models of the provider: none if it does not list them in time.
    pub(super) fn model_names(&self, home: &Home) -> Result<Vec<String>> {
        if !self.models.is_empty() {
            return Ok(self.models.clone());
        }
        let names = model_names(home, &[self.preset], VENDOR_TIMEOUT)?;
        Ok(names.into_iter().flatten().collect())
    }
}

/// The presets whose key is stored or set. Of several with the same variable, only the first and
/// those with a stored key.
fn with_key(home: &Home) -> Result<Vec<UsableProvider>> {
    let providers: Vec<Provider> = presets().iter().map(provider).collect();
    let mut found: Vec<UsableProvider> = Vec::new();
    for (preset, is_logged_in) in presets().iter().zip(login::logged_in(home, &providers)?) {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|it| !it.is_empty());
        let is_known = found.iter().any(|it| it.preset.env_key == preset.env_key);
        if is_logged_in || preset.env_key.is_some_and(is_set) && !is_known {
            found.push(UsableProvider {
                preset,
                is_logged_in,
                models: Vec::new(),
            });
        }
    }
    Ok(found)
}

/// Whether `raddle login` stored the key of a preset.
pub(super) fn is_logged_in(home: &Home, preset: &Preset) -> Result<bool> {
    Ok(login::logged_in(home, &[provider(preset)])?.contains(&true))
}

fn is_local(preset: &Preset) -> bool {
    preset.base_url.starts_with("http://127.0.0.1:")
}

/// Asks providers for their models concurrently. The names are in the order of the providers; a
/// provider that does not answer in time has none.
fn model_names(
    home: &Home,
    presets: &[&'static Preset],
    limit: Duration,
) -> Result<Vec<Vec<String>>> {
    let runtime = runtime::current_thread()?;
    let entered = runtime.enter();
    let vendor_client = Arc::new(VendorClient::new(&home.state, None));
    let mut requests = JoinSet::new();
    for (at, preset) in presets.iter().enumerate() {
        requests.spawn(names_of(at, provider(preset), vendor_client.clone(), limit));
    }
    let mut names = vec![Vec::new(); presets.len()];
    runtime.block_on(async {
        while let Some(done) = requests.join_next().await {
            if let Ok((at, listed)) = done {
                names[at] = listed;
            }
        }
    });
    drop(entered);
    // A lookup of a name blocks a thread, which may outlast the deadline.
    runtime.shutdown_background();
    Ok(names)
}

async fn names_of(
    at: usize,
    provider: Provider,
    vendor_client: Arc<VendorClient>,
    limit: Duration,
) -> (usize, Vec<String>) {
    let listed = timeout(limit, vendor_client.models(&provider)).await;
    let listed = listed.ok().and_then(Result::ok).unwrap_or_default();
    (at, listed.into_iter().map(|it| it.id).collect())
}

/// The provider of a preset, without a configuration.
fn provider(preset: &Preset) -> Provider {
    let variable = preset.env_key.map(str::to_owned);
    Provider {
        name: preset.name.to_owned(),
        base_url: preset.base_url.to_owned(),
        wire_api: Some(preset.wire_api.to_owned()),
        key: variable.map_or(KeySource::None, |variable| {
            KeySource::Stored(SignIn {
                variable: Some(variable),
                ..SignIn::default()
            })
        }),
        ..Provider::default()
    }
}
