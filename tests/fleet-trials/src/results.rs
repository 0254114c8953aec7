//! Results of seeds, one JSON object on a line, so that an interrupted command can continue.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::checker::{HistoryFigures, HistoryViolation};

/// Result of one seed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeedResult {
    pub fault: String,
    pub seed: u64,
    pub seconds: u64,
    pub figures: HistoryFigures,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<HistoryViolation>,
    /// Reason for which the run could not be judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl SeedResult {
    pub fn is_passed(&self) -> bool {
        self.violations.is_empty() && self.error.is_none()
    }
}

/// The results file.
pub struct ResultsFile(PathBuf);

impl ResultsFile {
    pub fn new(folder: &Path) -> Self {
        Self(folder.join("results.jsonl"))
    }

    pub fn append(&self, result: &SeedResult) -> Result<()> {
        let mut json = serde_json::to_vec(result)?;
        json.push(b'\n');
        let mut file = OpenOptions::new().create(true).append(true).open(&self.0)?;
        Ok(file.write_all(&json)?)
    }

    /// Reads the results of a fault. A line that was not finished is left out.
    pub fn read(&self, fault: &str) -> Vec<SeedResult> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        let results = text.lines().flat_map(serde_json::from_str::<SeedResult>);
        results.filter(|it| it.fault == fault).collect()
    }

    /// Seeds of a fault that passed.
    pub fn passed(&self, fault: &str) -> BTreeSet<u64> {
        let results = self.read(fault).into_iter();
        results
            .filter(SeedResult::is_passed)
            .map(|it| it.seed)
            .collect()
    }
}
