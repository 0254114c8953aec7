//! What the models do, and what a turn must come to.

use std::time::Duration;

/// How long a model may be silent.
pub const LIMIT: Duration = Duration::from_secs(2);

/// How much later a turn may end: the machine is busy with many turns at once.
const SLACK: Duration = Duration::from_secs(1);

/// What a healthy model may keep silent for: nine tenths of the limit.
const SILENCE: &str = "1800";

/// The longest wait before a first retry: 200 ms and a fifth.
const PAUSE: Duration = Duration::from_millis(240);

/// Where a provider's calls go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CallTarget {
    Mock,
    /// A socket that is reset once the call has come.
    HangsUp,
    /// A port where nobody listens.
    Refuses,
}

/// The wires on which models are asked.
const WIRES: [&str; 4] = ["responses", "chat", "messages", "gemini"];

/// A provider of the server's configuration. Each model has two on each wire: one that is asked once, so that a
/// turn ends with its first fault, and one that is asked twice, so that the end after a retry is seen too.
#[derive(Clone, Copy)]
pub struct Provider {
    pub model: CallTarget,
    retries: usize,
    wire: &'static str,
}

/// All of them.
pub fn providers() -> impl Iterator<Item = Provider> {
    let models = [CallTarget::Mock, CallTarget::HangsUp, CallTarget::Refuses].into_iter();
    let tried = models.flat_map(|model| [0, 1].map(|retries| (model, retries)));
    tried.flat_map(|(model, retries)| {
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

/// One way of a model to behave.
pub struct FaultCase {
    pub name: &'static str,
    does: ModelBehaviour,
    /// The name of the error; none when the turn completes.
    pub error: Option<&'static str>,
    /// Whether a call that came to this may be made again.
    is_tried_again: bool,
    /// Whether the model says nothing until the limit is passed.
    is_silent: bool,
    /// How long the model asks to be left alone before it is called again.
    away: Duration,
    /// Whether the history is condensed, and the question put again.
    is_condensed: bool,
}

enum ModelBehaviour {
    /// The mock does this in place of an answer.
    Instead(&'static str),
    /// The same, and in every other turn after it has begun to speak.
    Within(&'static str),
    Calls(CallTarget),
    /// An answer that takes its time.
    Answers,
}

const fn case(name: &'static str, does: ModelBehaviour, error: &'static str) -> FaultCase {
    FaultCase {
        name,
        does,
        error: Some(error),
        is_tried_again: false,
        is_silent: false,
        away: Duration::ZERO,
        is_condensed: false,
    }
}

impl FaultCase {
    const fn again(mut self) -> Self {
        self.is_tried_again = true;
        self
    }

    const fn silent(mut self) -> Self {
        self.is_silent = true;
        self
    }

    const fn condensed(mut self) -> Self {
        self.is_condensed = true;
        self
    }

    const fn away(mut self, away: Duration) -> Self {
        self.away = away;
        self
    }
}

const BROKEN: &str = "responseStreamDisconnected";
const UNCONNECTED: &str = "httpConnectionFailed";

/// The names of errors are those of the table in `docs/models.md`.
pub const CASES: &[FaultCase] = &[
    case("stall", ModelBehaviour::Within("stall"), BROKEN)
        .again()
        .silent(),
    case("keep-alive", ModelBehaviour::Within("keep-alive"), BROKEN)
        .again()
        .silent(),
    case("mute", ModelBehaviour::Instead("mute"), BROKEN)
        .again()
        .silent(),
    case("cut", ModelBehaviour::Within("cut"), BROKEN).again(),
    case("reset", ModelBehaviour::Within("reset"), BROKEN).again(),
    case(
        "reset at once",
        ModelBehaviour::Calls(CallTarget::HangsUp),
        UNCONNECTED,
    )
    .again(),
    case("hang-up", ModelBehaviour::Instead("hang-up"), UNCONNECTED).again(),
    case(
        "refused",
        ModelBehaviour::Calls(CallTarget::Refuses),
        UNCONNECTED,
    )
    .again(),
    case("garbage", ModelBehaviour::Within("garbage"), BROKEN),
    case(
        "content type",
        ModelBehaviour::Instead("content-type"),
        BROKEN,
    ),
    case("empty", ModelBehaviour::Instead("empty"), BROKEN).again(),
    case("429", ModelBehaviour::Within("429"), "rateLimitExceeded").again(),
    case(
        "429, retry-after",
        ModelBehaviour::Within("429 retry_after=1"),
        "rateLimitExceeded",
    )
    .again()
    .away(Duration::from_secs(1)),
    case("500", ModelBehaviour::Within("500"), "internalServerError").again(),
    case("529", ModelBehaviour::Within("529"), "serverOverloaded").again(),
    case(
        "context overflow",
        ModelBehaviour::Within("context"),
        "contextWindowExceeded",
    )
    .condensed(),
    FaultCase {
        error: None,
        ..case("healthy and slow", ModelBehaviour::Answers, "")
    },
];

/// What one turn is asked, and of whom.
pub struct TurnPlan {
    pub provider: String,
    pub says: String,
    /// How often its provider may be called.
    attempts: usize,
    /// Whether a later call goes well: a message that was cut off is gone on with, or the history condensed, and
    /// the model is asked for that, not for the fault.
    is_mended: bool,
}

impl FaultCase {
    /// Of four turns, two may try again, and of each two one is in the middle of an answer. The next four are
    /// on the next wire.
    pub fn asked(&self, number: usize) -> TurnPlan {
        let is_begun = number / 2 % 2 == 1;
        let (model, says) = match self.does {
            ModelBehaviour::Instead(fault) => (CallTarget::Mock, format!("MOCK {fault}")),
            ModelBehaviour::Within(fault) if is_begun => (
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
        let is_cut_off = is_begun && matches!(self.does, ModelBehaviour::Within(_));
        // On the others, the mock says that its message is whole before it fails.
        let is_gone_on_with =
            is_cut_off && self.is_tried_again && matches!(wire, "chat" | "gemini") && retries > 0;
        // Elsewhere, what the user said and what asks to condense it are one message, so the fault is asked for
        // again and again.
        let is_fitted = self.is_condensed && (is_begun || wire == "responses");
        let provider = Provider {
            model,
            retries,
            wire,
        };
        TurnPlan {
            provider: provider.name(),
            says,
            attempts: 1 + retries,
            is_mended: is_gone_on_with || is_fitted,
        }
    }

    /// The name of the error that such a turn ends with; none when it completes.
    pub fn error_of(&self, asked: &TurnPlan) -> Option<&'static str> {
        self.error.filter(|_| !asked.is_mended)
    }

    /// How often the model is called in such a turn. One that refuses to be called is not.
    pub fn calls(&self, asked: &TurnPlan) -> usize {
        match self.does {
            ModelBehaviour::Calls(CallTarget::Refuses) => 0,
            _ => self.attempts(asked),
        }
    }

    fn attempts(&self, asked: &TurnPlan) -> usize {
        match (self.is_condensed, asked.is_mended) {
            // The question, what asks to condense it, and the question again.
            (true, true) => 3,
            // The question, and four times less to be condensed.
            (true, false) => 5,
            _ if self.is_tried_again => asked.attempts,
            _ => 1,
        }
    }

    /// How soon and how late such a turn may end.
    pub fn within(&self, asked: &TurnPlan) -> (Duration, Duration) {
        let attempts = self.attempts(asked);
        let failed = attempts - usize::from(asked.is_mended);
        (self.shortest(failed), self.longest(attempts))
    }

    fn shortest(&self, attempts: usize) -> Duration {
        let attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
        let silent = if self.is_silent {
            LIMIT * attempts
        } else {
            Duration::ZERO
        };
        silent + self.away * (attempts - 1)
    }

    /// The limit for each call, the waits between them, and some slack.
    pub fn longest(&self, attempts: usize) -> Duration {
        if self.error.is_none() {
            // It is silent twice, and never for too long.
            return LIMIT * 2 + SLACK;
        }
        let attempts = if self.is_tried_again || self.is_condensed {
            attempts
        } else {
            1
        };
        let attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
        let pause = PAUSE.max(self.away * 6 / 5);
        LIMIT * attempts + pause * (attempts - 1) + SLACK
    }
}
