//! How much of the machine other programs had while we measured.

use std::fs;

use anyhow::{Context, Result};

/// A measurement under way. All times are in the kernel's ticks, so their length does not matter.
pub struct Noise {
    servers: Vec<u32>,
    busy: u64,
    total: u64,
    ours: u64,
}

impl Noise {
    /// `servers` are processes of ours that live until the end of the measurement.
    pub fn begin(servers: &[u32]) -> Result<Self> {
        let (busy, total) = machine()?;
        Ok(Self {
            servers: servers.to_vec(),
            busy,
            total,
            ours: ours(servers)?,
        })
    }

    /// The share of all processors that went to others, from 0 to 1.
    pub fn end(self) -> Result<f64> {
        let (busy, total) = machine()?;
        let ours = ours(&self.servers)? - self.ours;
        let others = (busy - self.busy).saturating_sub(ours);
        Ok(others as f64 / (total - self.total).max(1) as f64)
    }
}

/// Ticks of all processors: those spent on work, and all of them.
fn machine() -> Result<(u64, u64)> {
    let text = fs::read_to_string("/proc/stat")?;
    let line = text.lines().next().context("an empty /proc/stat")?;
    // user nice system idle iowait irq softirq steal; guest time is already in user.
    let ticks: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        .take(8)
        .map(|word| Ok(word.parse()?))
        .collect::<Result<_>>()?;
    let [user, nice, system, idle, waiting, irq, softirq, stolen] = ticks[..] else {
        anyhow::bail!("/proc/stat begins with `{line}`");
    };
    let busy = user + nice + system + irq + softirq + stolen;
    Ok((busy, busy + idle + waiting))
}

/// Ticks of this process, of its children that have ended, and of these servers.
fn ours(servers: &[u32]) -> Result<u64> {
    let mut ticks = spent("self", 4)?;
    for server in servers {
        ticks += spent(&server.to_string(), 2)?;
    }
    Ok(ticks)
}

/// The first `fields` of utime, stime, and the same of ended children.
fn spent(process: &str, fields: usize) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name in brackets may hold anything, so count from behind it.
    let (_, rest) = text.rsplit_once(')').context("no name in stat")?;
    let ticks = rest.split_whitespace().skip(11).take(fields);
    ticks.map(|word| Ok(word.parse::<u64>()?)).sum()
}
