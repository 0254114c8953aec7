//! The token usage of a thread's models.

use raddle_console::one_line;
use raddle_core::ports::ReadError;
use raddle_core::{Base, ModelUsage, Thread, dollars};
use serde_json::{Value, json};

use super::ThreadView;

/// Returns the usage of each model, from the records.
pub(super) fn accounts(view: &dyn ThreadView) -> Result<Vec<ModelUsage>, ReadError> {
    let base = view.base()?;
    let base = base.filter(|it| it.version == Base::VERSION);
    let mut thread = base.map_or_else(Thread::new, |it| it.thread);
    loop {
        let page = view.records(thread.head())?;
        if page.is_empty() {
            return Ok(thread.model_usage().to_vec());
        }
        page.iter().for_each(|record| thread.apply(record));
    }
}

/// Formats the usage of a model as text.
pub(super) fn line(it: &ModelUsage) -> String {
    let counted = |count: u64, what: &str| match count {
        0 => String::new(),
        count => format!(", {count} {what}"),
    };
    let name = one_line(&name(it), 100);
    let cost = match it.unpriced < it.calls || it.nano_usd > 0 {
        true => dollars(it.nano_usd),
        false => "price not known".to_owned(),
    };
    format!(
        "{name}  {} tokens ({} read, {} of them from the cache, {} written)  {cost}  {} calls{}{}",
        it.usage.total(),
        it.usage.input,
        it.usage.cached,
        it.usage.output,
        it.calls,
        counted(it.unpriced, "without a price"),
        counted(it.estimated, "estimated"),
    )
}

/// Formats the usage of a model as JSON.
pub(super) fn json(it: &ModelUsage) -> Value {
    json!({
        "provider": it.provider,
        "model": it.model,
        "calls": it.calls,
        "usage": it.usage,
        "nanoUsd": it.nano_usd,
        "unpricedCalls": it.unpriced,
        "estimatedCalls": it.estimated,
    })
}

fn name(it: &ModelUsage) -> String {
    match (&it.provider, &it.model) {
        (Some(provider), Some(model)) => format!("{provider}/{model}"),
        (None, Some(name)) | (Some(name), None) => name.clone(),
        (None, None) => "others".to_owned(),
    }
}
