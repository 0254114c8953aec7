//! The models that vendors say they have, kept for a while. Nobody is asked before a client wants to know.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::providers::Provider;
use super::vendors::{OfferedModel, Vendors};

/// How long a list is good, and how long it is not asked for again after there was none.
const LIST_TTL: Duration = Duration::from_secs(300);
const FAILURE_TTL: Duration = Duration::from_secs(30);

/// How long a client waits for lists that are not there yet; it is then told of what is.
const LIST_TIMEOUT: Duration = Duration::from_secs(1);

/// The lists. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalogue {
    lists: Arc<Mutex<HashMap<String, Arc<ProviderModels>>>>,
}

/// What one provider has.
#[derive(Debug)]
struct ProviderModels {
    provider: Provider,
    since: Instant,
    state: watch::Receiver<ListState>,
}

/// What a provider said.
#[derive(Clone, Debug)]
enum ListState {
    /// It was asked. Whoever asks has limits of its own.
    Pending,
    Models(Arc<[OfferedModel]>),
    Failed,
}

impl ProviderModels {
    fn is_stale(&self) -> bool {
        let kept = match *self.state.borrow() {
            ListState::Pending => return false,
            ListState::Models(_) => LIST_TTL,
            ListState::Failed => FAILURE_TTL,
        };
        self.since.elapsed() >= kept
    }
}

impl Catalogue {
    /// What these providers have, each with its name. Those that do not answer are left out.
    pub(crate) async fn of(
        &self,
        providers: Vec<Provider>,
        vendors: &Arc<dyn Vendors>,
    ) -> Vec<(String, Arc<[OfferedModel]>)> {
        let asked: Vec<_> = providers
            .into_iter()
            .map(|it| self.asked(it, vendors))
            .collect();
        let enough = Instant::now() + LIST_TIMEOUT;
        let mut known = Vec::new();
        for list in asked {
            let mut told = list.state.clone();
            let told = told.wait_for(|it| !matches!(it, ListState::Pending));
            if let Ok(Ok(told)) = timeout_at(enough, told).await
                && let ListState::Models(offered) = &*told
            {
                known.push((list.provider.name.clone(), offered.clone()));
            }
        }
        known
    }

    /// Whether a provider has said that it has a model. Nobody is asked for it.
    pub(crate) fn has(&self, provider: &str, model: &str) -> bool {
        let list = self.lists().get(provider).cloned();
        list.is_some_and(|list| match &*list.state.borrow() {
            ListState::Models(offered) => offered.iter().any(|it| it.id == model),
            ListState::Pending | ListState::Failed => false,
        })
    }

    /// The list of a provider, which is there or on its way.
    fn asked(&self, provider: Provider, vendors: &Arc<dyn Vendors>) -> Arc<ProviderModels> {
        let mut lists = self.lists();
        if let Some(list) = lists.get(&provider.name)
            && list.provider == provider
            && !list.is_stale()
        {
            return list.clone();
        }
        let (tell, told) = watch::channel(ListState::Pending);
        let list = Arc::new(ProviderModels {
            since: Instant::now(),
            state: told,
            provider,
        });
        lists.insert(list.provider.name.clone(), list.clone());
        let (asking, vendors) = (list.clone(), vendors.clone());
        tokio::spawn(async move {
            let told = match vendors.models(&asking.provider).await {
                Ok(offered) => ListState::Models(offered.into()),
                Err(why) => {
                    let provider = &asking.provider.name;
                    tracing::info!(provider, why, "a provider does not tell its models");
                    ListState::Failed
                }
            };
            tell.send_replace(told);
        });
        list
    }

    fn lists(&self) -> MutexGuard<'_, HashMap<String, Arc<ProviderModels>>> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
