//! Faults of models, and the expected end of a turn.

use std::time::Duration;

/// Timeout for a silent model.
pub const LIMIT: Duration = Duration::from_secs(2);

/// Additional time allowed for the end of a turn: the machine runs many turns at once.
const SLACK: Duration = Duration::from_secs(1);

/// Silence of a healthy model in milliseconds: nine tenths of the limit.
const SILENCE: &str = "1800";

/// Longest delay before a first retry: 200 ms and a fifth.
const PAUSE: Duration = Duration::from_millis(240);

/// Destination of a provider's calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CallTarget {
    Mock,
    /// A socket that resets the connection once the call has arrived.
    Reset,
    /// A port without a listener.
    Refused,
}

/// Wire formats on which models are called.
const WIRES: [&str; 4] = ["responses", "chat", "messages", "gemini"];

/// A provider of the server's configuration. Each model has two on each wire: one without retries,
/// so that a turn ends with its first fault, and one with one retry, to check the end after a retry
/// too.
#[derive(Clone, Copy)]
pub struct Provider {
    pub model: CallTarget,
    retries: usize,
    wire: &'static str,
}

/// Returns all providers of the configuration.
pub fn providers() -> impl Iterator<Item = Provider> {
    let models = [CallTarget::Mock, CallTarget::Reset, CallTarget::Refused].into_iter();
    let with_retries = models.flat_map(|model| [0, 1].map(|retries| (model, retries)));
    with_retries.flat_map(|(model, retries)| {
        WIRES.map(|wire| Provider {
            model,
            retries,
            wire,
        })
    })
}

impl Provider {
    pub fn name(&self) -> String {
        let Self {
            model,
            retries,
            wire,
        } = self;
        format!("{model:?}-{retries}-{wire}").to_lowercase()
    }

    pub fn config(&self, address: &str) -> String {
        let Self { retries, wire, .. } = self;
        let name = self.name();
        let limit = LIMIT.as_millis();
        format!(
            "[model_providers.{name}]\n\
             base_url = \"{address}\"\n\
             wire_api = \"{wire}\"\n\
             stream_idle_timeout_ms = {limit}\n\
             request_max_retries = {retries}\n\
             stream_max_retries = {retries}\n"
        )
    }
}

/// A fault of a model.
pub struct FaultCase {
    pub name: &'static str,
    behaviour: ModelBehaviour,
    /// Name of the error; `None` when the turn completes.
    pub error: Option<&'static str>,
    /// Whether the server may retry a call with this fault.
    is_retried: bool,
    /// Whether the model is silent until the timeout.
    is_silent: bool,
    /// Delay that the model requests before the next call.
    retry_after: Duration,
    /// Whether the server compacts the history and calls the model again.
    is_compacted: bool,
}

enum ModelBehaviour {
    /// The mock fails in place of a response.
    Instead(&'static str),
    /// The mock fails in place of a response, or in every other turn in the middle of one.
    Within(&'static str),
    Calls(CallTarget),
    /// A slow but complete response.
    Answers,
}

const fn case(name: &'static str, behaviour: ModelBehaviour, error: &'static str) -> FaultCase {
    FaultCase {
        name,
        behaviour,
        error: Some(error),
        is_retried: false,
        is_silent: false,
        retry_after: Duration::ZERO,
        is_compacted: false,
    }
}

impl FaultCase {
    const fn retried(mut self) -> Self {
        self.is_retried = true;
        self
    }

    const fn silent(mut self) -> Self {
        self.is_silent = true;
        self
    }

    const fn compacted(mut self) -> Self {
        self.is_compacted = true;
        self
    }

    const fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = delay;
        self
    }
}

const BROKEN: &str = "responseStreamDisconnected";
const UNCONNECTED: &str = "httpConnectionFailed";

/// All faults. The names of errors are those of the table in `docs/models.md`.
pub const CASES: &[FaultCase] = &[
    case("stall", ModelBehaviour::Within("stall"), BROKEN)
        .retried()
        .silent(),
    case("keep-alive", ModelBehaviour::Within("keep-alive"), BROKEN)
        .retried()
        .silent(),
    case("mute", ModelBehaviour::Instead("mute"), BROKEN)
        .retried()
        .silent(),
    case("cut", ModelBehaviour::Within("cut"), BROKEN).retried(),
    case("reset", ModelBehaviour::Within("reset"), BROKEN).retried(),
    case(
        "reset at once",
        ModelBehaviour::Calls(CallTarget::Reset),
        UNCONNECTED,
    )
    .retried(),
    case("hang-up", ModelBehaviour::Instead("hang-up"), UNCONNECTED).retried(),
    case(
        "refused",
        ModelBehaviour::Calls(CallTarget::Refused),
        UNCONNECTED,
    )
    .retried(),
    case("garbage", ModelBehaviour::Within("garbage"), BROKEN),
    case(
        "content type",
        ModelBehaviour::Instead("content-type"),
        BROKEN,
    ),
    case("empty", ModelBehaviour::Instead("empty"), BROKEN).retried(),
    case("429", ModelBehaviour::Within("429"), "rateLimitExceeded").retried(),
    case(
        "429, retry-after",
        ModelBehaviour::Within("429 retry_after=1"),
        "rateLimitExceeded",
    )
    .retried()
    .retry_after(Duration::from_secs(1)),
    case("500", ModelBehaviour::Within("500"), "internalServerError").retried(),
    case("529", ModelBehaviour::Within("529"), "serverOverloaded").retried(),
    case(
        "context overflow",
        ModelBehaviour::Within("context"),
        "contextWindowExceeded",
    )
    .compacted(),
    FaultCase {
        error: None,
        ..case("healthy and slow", ModelBehaviour::Answers, "")
    },
];

/// Provider and input of one turn.
pub struct TurnPlan {
    pub provider: String,
    pub prompt: String,
    /// Maximum number of calls to its provider.
    attempts: usize,
    /// Whether a later call succeeds: an interrupted message is continued or the history compacted,
    /// and the input of that call does not request the fault.
    succeeds_later: bool,
}

impl FaultCase {
    /// Plans a turn. Of four turns, two may retry, and one of each two fails in the middle of a
    /// response. The next four use the next wire.
    pub fn plan(&self, number: usize) -> TurnPlan {
        let is_mid_response = number / 2 % 2 == 1;
        let (model, prompt) = match self.behaviour {
            ModelBehaviour::Instead(fault) => (CallTarget::Mock, format!("MOCK {fault}")),
            ModelBehaviour::Within(fault) if is_mid_response => (
                CallTarget::Mock,
                format!("MOCK reasoning say=\"let me see\" text say=\"half a sent\" {fault}"),
            ),
            ModelBehaviour::Within(fault) => (CallTarget::Mock, format!("MOCK {fault}")),
            ModelBehaviour::Calls(model) => (model, "hello".to_owned()),
            ModelBehaviour::Answers => (
                CallTarget::Mock,
                format!(
                    "MOCK silence ms={SILENCE} text say=\"warp and\" silence ms={SILENCE} text say=\"weft\""
                ),
            ),
        };
        let retries = number % 2;
        let wire = WIRES[number / 4 % WIRES.len()];
        let is_cut_off = is_mid_response && matches!(self.behaviour, ModelBehaviour::Within(_));
        // On the other wires, the mock completes its message before it fails.
        let is_continued =
            is_cut_off && self.is_retried && matches!(wire, "chat" | "gemini") && retries > 0;
        // On the other wires, the user's input and the compaction prompt are one message, so every
        // call requests the fault again.
        let is_compacted_successfully =
            self.is_compacted && (is_mid_response || wire == "responses");
        let provider = Provider {
            model,
            retries,
            wire,
        };
        TurnPlan {
            provider: provider.name(),
            prompt,
            attempts: 1 + retries,
            succeeds_later: is_continued || is_compacted_successfully,
        }
    }

    /// Returns the name of the error that ends such a turn; `None` when it completes.
    pub fn error_of(&self, plan: &TurnPlan) -> Option<&'static str> {
        self.error.filter(|_| !plan.succeeds_later)
    }

    /// Returns the number of model calls in such a turn. Refused connections do not count.
    pub fn calls(&self, plan: &TurnPlan) -> usize {
        match self.behaviour {
            ModelBehaviour::Calls(CallTarget::Refused) => 0,
            _ => self.attempts(plan),
        }
    }

    fn attempts(&self, plan: &TurnPlan) -> usize {
        match (self.is_compacted, plan.succeeds_later) {
            // The input, the compaction call, and the input again.
            (true, true) => 3,
            // The input, and four compaction calls with less and less input.
            (true, false) => 5,
            _ if self.is_retried => plan.attempts,
            _ => 1,
        }
    }

    /// Returns the earliest and the latest end of such a turn.
    pub fn within(&self, plan: &TurnPlan) -> (Duration, Duration) {
        let attempts = self.attempts(plan);
        let failed = attempts - usize::from(plan.succeeds_later);
        (self.shortest(failed), self.longest(attempts))
    }

    fn shortest(&self, attempts: usize) -> Duration {
        let attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
        let silent = if self.is_silent {
            LIMIT * attempts
        } else {
            Duration::ZERO
        };
        silent + self.retry_after * (attempts - 1)
    }

    /// Returns the sum of the timeouts of all calls, the delays between them, and some slack.
    pub fn longest(&self, attempts: usize) -> Duration {
        if self.error.is_none() {
            // The model is silent twice, and never for too long.
            return LIMIT * 2 + SLACK;
        }
        let attempts = if self.is_retried || self.is_compacted {
            attempts
        } else {
            1
        };
        let attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
        let pause = PAUSE.max(self.retry_after * 6 / 5);
        LIMIT * attempts + pause * (attempts - 1) + SLACK
    }
}
