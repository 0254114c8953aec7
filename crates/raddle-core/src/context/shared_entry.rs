//! A context entry as it is handed out: shared, with a cache of its JSON for a vendor.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde_json::value::RawValue;

use super::ContextEntry;

/// An entry that every model call reads and that is serialized only for the first. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SharedEntry(Arc<EntryCell>);

#[derive(Debug)]
struct EntryCell {
    entry: ContextEntry,
    written: OnceLock<VendorJson>,
}

/// The entry's JSON for one vendor; `None` if that vendor gets nothing.
#[derive(Debug)]
struct VendorJson {
    vendor: Arc<str>,
    json: Option<Arc<RawValue>>,
}

impl SharedEntry {
    /// Returns the entry's JSON for a vendor. `write` makes it; for the first vendor the result is
    /// cached.
    pub fn written<E>(
        &self,
        vendor: &Arc<str>,
        write: impl FnOnce(&ContextEntry) -> Result<Option<Arc<RawValue>>, E>,
    ) -> Result<Option<Arc<RawValue>>, E> {
        if let Some(cached) = self.0.written.get()
            && cached.vendor == *vendor
        {
            return Ok(cached.json.clone());
        }
        let json = write(&self.0.entry)?;
        // A later vendor finds the cell set, and is not cached.
        let _ = self.0.written.set(VendorJson {
            vendor: vendor.clone(),
            json: json.clone(),
        });
        Ok(json)
    }
}

impl From<ContextEntry> for SharedEntry {
    fn from(entry: ContextEntry) -> Self {
        Self(Arc::new(EntryCell {
            entry,
            written: OnceLock::new(),
        }))
    }
}

impl Deref for SharedEntry {
    type Target = ContextEntry;

    fn deref(&self) -> &ContextEntry {
        &self.0.entry
    }
}

impl PartialEq for SharedEntry {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::*;

    #[test]
    fn json_is_cached_for_the_first_vendor_only() {
        let entry_shared = SharedEntry::from(ContextEntry::Note("n".to_owned()));
        let vendors: [Arc<str>; 2] = ["a".into(), "b".into()];
        let mut calls = Vec::new();
        for at in [0, 0, 1, 1, 0] {
            let json_result = entry_shared.clone().written(&vendors[at], |entry| {
                calls.push(at);
                let text = format!("{} {entry:?}", vendors[at]);
                to_raw_value(&text).map(|json| Some(json.into()))
            });
            let json = json_result.expect("JSON").expect("an item");
            let expected = format!(r#""{} Note(\"n\")""#, vendors[at]);
            assert_eq!(json.get(), expected);
        }
        assert_eq!(calls, [0, 1, 1]);
    }
}
