//! The mock model inside this process, for the provider `mock`.

use std::sync::{Arc, OnceLock};

use raddle_config::{MOCK_BASE_URL, Provider};
use raddle_model::ModelClient;
use raddle_model::scripted::{ModelScript, ScriptedServer};

/// The mock model, which starts at its first call and repeats its input. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct BuiltInMock(Arc<OnceLock<RunningMock>>);

#[derive(Debug)]
struct RunningMock {
    client: ModelClient,
    /// Dropping it ends the connections of the client.
    _server: ScriptedServer,
}

impl BuiltInMock {
    /// Returns the client for the provider if its calls go to the mock. Must be called within a
    /// runtime, where the mock then runs.
    pub(crate) fn client_for(&self, provider: &Provider) -> Option<&ModelClient> {
        if provider.base_url != MOCK_BASE_URL {
            return None;
        }
        Some(&self.0.get_or_init(RunningMock::start).client)
    }
}

impl RunningMock {
    fn start() -> Self {
        let (server, dial) = ScriptedServer::in_memory(ModelScript::default());
        Self {
            client: ModelClient::with_dial(dial),
            _server: server,
        }
    }
}
