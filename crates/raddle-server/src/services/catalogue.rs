//! The models that vendors offer, cached. No vendor is queried before a client asks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use raddle_config::{OfferedModel, Provider, Vendors};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::spans;

/// Lifetime of a list, and the delay before the next query after a failed one.
const LIST_TTL: Duration = Duration::from_secs(300);
const FAILURE_TTL: Duration = Duration::from_secs(30);

/// How long a client waits for missing lists; the response then contains those that arrived.
const LIST_TIMEOUT: Duration = Duration::from_secs(1);

/// The lists. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalogue {
    lists: Arc<Mutex<HashMap<String, Arc<ProviderModels>>>>,
}

/// The models of one provider.
#[derive(Debug)]
struct ProviderModels {
    provider: Provider,
    since: Instant,
    state: watch::Receiver<ListState>,
}

/// State of the query to a provider.
#[derive(Clone, Debug)]
enum ListState {
    /// The query runs. The client for vendors has timeouts of its own.
    Pending,
    Models(Arc<[OfferedModel]>),
    Failed,
}

impl ProviderModels {
    fn is_stale(&self) -> bool {
        let ttl = match *self.state.borrow() {
            ListState::Pending => return false,
            ListState::Models(_) => LIST_TTL,
            ListState::Failed => FAILURE_TTL,
        };
        self.since.elapsed() >= ttl
    }
}

impl Catalogue {
    /// Returns the models of these providers, with their names. Leaves out providers that do not
    /// respond.
    pub(crate) async fn of(
        &self,
        providers: Vec<Provider>,
        vendors: &Arc<dyn Vendors>,
    ) -> Vec<(String, Arc<[OfferedModel]>)> {
        let queries: Vec<_> = providers
            .into_iter()
            .map(|it| self.list_of(it, vendors))
            .collect();
        let deadline = Instant::now() + LIST_TIMEOUT;
        let mut known = Vec::new();
        for list in queries {
            let mut receiver = list.state.clone();
            let received = receiver.wait_for(|it| !matches!(it, ListState::Pending));
            if let Ok(Ok(list_state)) = timeout_at(deadline, received).await
                && let ListState::Models(offered) = &*list_state
            {
                known.push((list.provider.name.clone(), offered.clone()));
            }
        }
        known
    }

    /// Whether a cached list of the provider contains the model. Sends no query.
    pub(crate) fn has(&self, provider: &str, model: &str) -> bool {
        let list = self.lists().get(provider).cloned();
        list.is_some_and(|list| match &*list.state.borrow() {
            ListState::Models(offered) => offered.iter().any(|it| it.id == model),
            ListState::Pending | ListState::Failed => false,
        })
    }

    /// Returns the list of a provider, cached or in progress.
    fn list_of(&self, provider: Provider, vendors: &Arc<dyn Vendors>) -> Arc<ProviderModels> {
        let mut lists = self.lists();
        if let Some(list) = lists.get(&provider.name)
            && list.provider == provider
            && !list.is_stale()
        {
            return list.clone();
        }
        let (sender, receiver) = watch::channel(ListState::Pending);
        let list = Arc::new(ProviderModels {
            since: Instant::now(),
            state: receiver,
            provider,
        });
        lists.insert(list.provider.name.clone(), list.clone());
        let (query, vendors) = (list.clone(), vendors.clone());
        spans::spawn(async move {
            let list_state = match vendors.models(&query.provider).await {
                Ok(offered) => ListState::Models(offered.into()),
                Err(why) => {
                    let (provider, why) = (&query.provider.name, why.to_string());
                    tracing::info!(provider, why, "the models of a provider cannot be listed");
                    ListState::Failed
                }
            };
            sender.send_replace(list_state);
        });
        list
    }

    fn lists(&self) -> MutexGuard<'_, HashMap<String, Arc<ProviderModels>>> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
