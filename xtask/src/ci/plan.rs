//! Selection of the steps to run.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use super::Ci;
use super::rotation::Day;

/// A named step of CI.
pub struct CiStep {
    pub name: &'static str,
    pub about: &'static str,
    /// Steps whose result this one uses. They are run too, regardless of the selection.
    pub needs: &'static [&'static str],
    /// Whether the step runs concurrently with later steps, until one needs it.
    pub background: bool,
    /// Day of the rotation on which the step is run; `None` means every day.
    pub rotation: Option<u64>,
    pub run: fn(&Ci) -> Result<()>,
}

/// Steps that the user selected.
pub enum StepChoice {
    All,
    Only(Vec<String>),
    From(String),
}

impl CiStep {
    /// Creates a step that runs every day, in the foreground, and needs no other.
    pub const fn new(name: &'static str, about: &'static str, run: fn(&Ci) -> Result<()>) -> Self {
        Self {
            name,
            about,
            needs: &[],
            background: false,
            rotation: None,
            run,
        }
    }

    pub const fn needs(mut self, steps: &'static [&'static str]) -> Self {
        self.needs = steps;
        self
    }

    pub const fn in_background(mut self) -> Self {
        self.background = true;
        self
    }

    pub const fn on_day(mut self, day: u64) -> Self {
        self.rotation = Some(day);
        self
    }
}

/// Returns the steps to run, in the order of the list. A day omits the slices of other days, except
/// those selected by name.
pub fn plan<'a>(
    all: &'a [CiStep],
    choice: &StepChoice,
    day: Option<Day>,
) -> Result<Vec<&'a CiStep>> {
    let is_today = |at: &usize| day.is_none_or(|day| day.runs(&all[*at]));
    let mut selected: BTreeSet<usize> = match choice {
        StepChoice::All => (0..all.len()).filter(is_today).collect(),
        StepChoice::Only(names) => names
            .iter()
            .map(|name| find(all, name))
            .collect::<Result<_>>()?,
        StepChoice::From(name) => {
            let first = find(all, name)?;
            let rest = (first + 1..all.len()).filter(is_today);
            rest.chain([first]).collect()
        }
    };
    // A needed step may have needs itself: repeat until nothing is added.
    loop {
        let mut needed = BTreeSet::new();
        for at in &selected {
            for name in all[*at].needs {
                needed.insert(find(all, name)?);
            }
        }
        if needed.is_subset(&selected) {
            return Ok(selected.into_iter().map(|at| &all[at]).collect());
        }
        selected.extend(needed);
    }
}

fn find(all: &[CiStep], name: &str) -> Result<usize> {
    match all.iter().position(|step| step.name == name) {
        Some(at) => Ok(at),
        None => {
            let names: Vec<&str> = all.iter().map(|step| step.name).collect();
            bail!("no step `{name}`; the steps are {}", names.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ci::steps::STEPS;

    fn names(choice: &StepChoice) -> Vec<&'static str> {
        plan(STEPS, choice, None)
            .expect("known steps")
            .iter()
            .map(|step| step.name)
            .collect()
    }

    #[test]
    fn needed_steps_run_first() {
        let only = StepChoice::Only(vec!["clients".to_owned()]);
        assert_eq!(names(&only), ["parts", "release", "clients"]);
    }

    #[test]
    fn from_goes_to_the_end() {
        let selected = names(&StepChoice::From("soak".to_owned()));
        assert_eq!(selected, ["parts", "release", "soak", "journal"]);
    }

    #[test]
    fn slice_of_another_day_is_omitted_unless_named() {
        let planned = |choice: &StepChoice, day: u64| -> Vec<&str> {
            let steps = plan(STEPS, choice, Some(Day(day))).expect("known steps");
            steps.iter().map(|step| step.name).collect()
        };
        assert!(planned(&StepChoice::All, 0).contains(&"nodes"));
        assert!(!planned(&StepChoice::All, 1).contains(&"nodes"));
        assert!(planned(&StepChoice::Only(vec!["nodes".to_owned()]), 1).contains(&"nodes"));
        assert!(planned(&StepChoice::From("nodes".to_owned()), 1).contains(&"nodes"));
    }

    #[test]
    fn every_need_stands_before_its_step() {
        for (at, step) in STEPS.iter().enumerate() {
            for need in step.needs {
                assert!(
                    find(STEPS, need).expect("a step") < at,
                    "{} before {need}",
                    step.name
                );
            }
        }
        assert_eq!(names(&StepChoice::All).len(), STEPS.len());
    }

    #[test]
    fn unknown_step_is_rejected() {
        assert!(plan(STEPS, &StepChoice::From("clipy".to_owned()), None).is_err());
    }
}
