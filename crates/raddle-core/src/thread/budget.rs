//! What was used, and what that means where there is a budget for it. Counting is part of the fold, so it survives
//! whoever counts, and nothing is counted twice.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{OpenItem, OpenTurn, Thread};
use crate::{
    Event, Failure, FailureKind, Gate, Measure, ModelEnd, ModelEnded, Price, RecordBody, Scope,
    Settings, SpendLimits, Spending, Timestamp, TurnKind, Usage, Warned,
};

/// How many models have an account of their own; what others used is counted together.
fn accounts_max() -> usize {
    crate::bugs::bound(64, 3)
}

/// What was used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BudgetUsage {
    tokens: u64,
    nano_usd: u64,
    /// Of turns that have ended.
    ms: u64,
    tool_calls: u64,
    /// The limits that someone was told are near.
    warned: BTreeMap<Measure, u64>,
    /// Whether tokens were estimated that a budget counts.
    is_estimated: bool,
    /// Whether someone was told of that.
    is_estimate_told: bool,
}

/// What one model used in a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelUsage {
    /// The provider, as the settings named it.
    pub provider: Option<String>,
    /// The model, as the settings named it.
    pub model: Option<String>,
    /// How often it was called.
    pub calls: u64,
    /// Tokens.
    pub usage: Usage,
    /// What they cost, as far as prices were known, in billionths of a dollar.
    pub nano_usd: u64,
    /// How many calls that used something had no price.
    pub unpriced: u64,
    /// Of how many calls the tokens are estimated.
    pub estimated: u64,
}

impl BudgetUsage {
    fn of(&self, measure: Measure) -> u64 {
        match measure {
            Measure::Tokens => self.tokens,
            Measure::Usd => self.nano_usd,
            Measure::Seconds => self.ms,
            Measure::ToolCalls => self.tool_calls,
        }
    }

    fn add(&mut self, tokens: u64, nano_usd: u64) {
        self.tokens = self.tokens.saturating_add(tokens);
        self.nano_usd = self.nano_usd.saturating_add(nano_usd);
    }
}

impl Settings {
    /// The limits of a turn or of a thread.
    pub fn limits(&self, scope: Scope) -> &SpendLimits {
        match scope {
            Scope::Turn => &self.turn_budget,
            Scope::Thread => &self.thread_budget,
        }
    }

    /// What stands against a call of a model at this price: there is a budget of money, and nobody knows what the
    /// call would take of it.
    pub fn unpriced(&self, price: Option<&Price>) -> Option<Failure> {
        let mut scopes = [Scope::Turn, Scope::Thread].into_iter();
        let found = scopes.find_map(|it| Some((it, self.limits(it).nano_usd?)));
        let (scope, limit) = found.filter(|_| price.is_none())?;
        let spending = Spending {
            scope,
            measure: Measure::Usd,
            spent: None,
            limit,
        };
        let model = self.model.as_deref().unwrap_or_default();
        let provider = self.provider.as_deref().unwrap_or_default();
        let message = format!(
            "{spending}, but the price of the model {model:?} of the provider {provider:?} is not known; \
             say it under [[prices]] in config.toml, or take out budget.{}.usd",
            scope.key()
        );
        Some(Failure {
            budget: Some(spending),
            ..Failure::new(FailureKind::BudgetSpent, message)
        })
    }
}

impl Failure {
    /// A budget is spent.
    pub fn budget_exhausted(spending: Spending) -> Self {
        let more = match spending.scope {
            Scope::Turn => "the next turn begins anew",
            Scope::Thread => {
                "raise it with thread/settings/update, or with config in thread/resume"
            }
        };
        let message = format!("the budget is spent: {spending}; {more}");
        Self {
            budget: Some(spending),
            ..Self::new(FailureKind::BudgetSpent, message)
        }
    }

    /// A budget is spent that the managed policy sets.
    pub(crate) fn managed_budget_exhausted(spending: Spending) -> Self {
        let message = format!("the budget of the managed policy is spent: {spending}");
        Self {
            message,
            ..Self::budget_exhausted(spending)
        }
    }
}

impl Thread {
    /// Every budget there is, and what is spent of it. Those of a turn are there while one runs.
    pub fn spending(&self, now: Timestamp) -> Vec<Spending> {
        let turn = self.turn.as_ref().map(|_| Scope::Turn);
        let scopes = turn.into_iter().chain([Scope::Thread]);
        let each = scopes.flat_map(|scope| Measure::ALL.map(|measure| (scope, measure)));
        each.filter_map(|(scope, measure)| {
            Some(Spending {
                scope,
                measure,
                spent: Some(self.spent_of(scope, measure, now)),
                limit: self.settings.limits(scope).of(measure)?,
            })
        })
        .collect()
    }

    /// What was used of everything that may have a budget.
    pub fn used(&self, now: Timestamp) -> Vec<(Scope, Measure, u64)> {
        let scopes = [Scope::Turn, Scope::Thread].into_iter();
        let each = scopes.flat_map(|scope| Measure::ALL.map(|measure| (scope, measure)));
        each.map(|(scope, measure)| (scope, measure, self.spent_of(scope, measure, now)))
            .collect()
    }

    /// What each model used, in the order in which they were first called.
    pub fn model_usage(&self) -> &[ModelUsage] {
        &self.accounts
    }

    /// What all calls cost, as far as prices were known, in billionths of a dollar.
    pub fn nano_usd(&self) -> u64 {
        self.spent.nano_usd
    }

    fn spent_of(&self, scope: Scope, measure: Measure, now: Timestamp) -> u64 {
        let turn = self.turn.as_ref();
        let running = match measure {
            Measure::Seconds => turn.map_or(0, |turn| turn.charged_ms(now)),
            Measure::Tokens | Measure::Usd | Measure::ToolCalls => 0,
        };
        let spent = match scope {
            Scope::Turn => turn.map(|it| &it.spent),
            Scope::Thread => Some(&self.spent),
        };
        running.saturating_add(spent.map_or(0, |it| it.of(measure)))
    }

    /// The first of these budgets of which nothing is left.
    fn exhausted(&self, measures: &[Measure], now: Timestamp) -> Option<Spending> {
        let spending = self.spending(now).into_iter();
        let mut spending = spending.filter(|it| measures.contains(&it.measure));
        spending.find(Spending::is_over)
    }

    /// The budget that keeps the model from being called.
    pub(super) fn exhausted_for_call(&self, now: Timestamp) -> Option<Spending> {
        self.exhausted(&[Measure::Tokens, Measure::Usd, Measure::Seconds], now)
    }

    /// The budget that keeps a tool from being started, if one is to be.
    pub(super) fn exhausted_for_tool(&self, turn: &OpenTurn, now: Timestamp) -> Option<Spending> {
        let is_to_start = |open: &OpenItem| {
            let is_run = open.is_tool() && (open.gate != Some(Gate::Answer) || open.is_clients());
            is_run && !open.started && !self.is_with_client(&open.item.id)
        };
        let wanted = turn.items.iter().any(is_to_start);
        wanted.then(|| self.exhausted(&[Measure::ToolCalls], now))?
    }

    /// The budget of time that is over, whatever the turn waits for.
    pub(super) fn exhausted_time(&self, now: Timestamp) -> Option<Spending> {
        self.turn.as_ref()?.charged_from?;
        self.exhausted(&[Measure::Seconds], now)
    }

    /// What someone should hear once: that a budget counts estimates, or is nearly spent.
    pub(super) fn budget_warning(&self, now: Timestamp) -> Option<RecordBody> {
        if self.spent.is_estimated && !self.spent.is_estimate_told {
            let message = "The provider does not say how many tokens a call used. Budgets count an estimate: \
                           one token for four bytes.";
            return Some(warning(Warned {
                estimated: true,
                ..Warned::of(message)
            }));
        }
        let spending = self.spending(now).into_iter();
        let mut near = spending.filter(|it| it.is_near() && !self.is_told(it));
        let it = near.next()?;
        let scope = it.scope.key();
        let message = format!(
            "A budget is nearly spent: {it} (budget.{scope}.{}).",
            it.measure.key()
        );
        Some(warning(Warned {
            budget: Some(it),
            ..Warned::of(message)
        }))
    }

    fn is_told(&self, it: &Spending) -> bool {
        let spent = match it.scope {
            Scope::Turn => self.turn.as_ref().map(|turn| &turn.spent),
            Scope::Thread => Some(&self.spent),
        };
        spent.is_some_and(|spent| spent.warned.get(&it.measure) == Some(&it.limit))
    }

    /// When a budget of time is nearly spent, or is.
    pub(super) fn time_is_up(&self) -> Option<Timestamp> {
        let turn = self.turn.as_ref()?;
        let since = turn.charged_from.filter(|_| turn.stopping.is_none())?;
        let spending = self.spending(since).into_iter();
        let times = spending.filter(|it| it.measure == Measure::Seconds);
        let until = times.map(|it| {
            // Rounded up, so that it is near when the time has come.
            let near = u64::try_from((u128::from(it.limit) * 4).div_ceil(5));
            let end = match self.is_told(&it) {
                true => it.limit,
                false => near.unwrap_or(it.limit),
            };
            let left = end.saturating_sub(it.spent.unwrap_or_default());
            since.plus_ms(i64::try_from(left).unwrap_or(i64::MAX))
        });
        until.min()
    }

    /// A call of the model ended and is paid for.
    pub(super) fn charge(&mut self, it: &ModelEnded) {
        let Some(turn) = self
            .turn
            .as_mut()
            .filter(|turn| turn.charged_from.is_some())
        else {
            return;
        };
        // What a call that was cut off had used, nobody said. It had at least read what there was.
        let cut_off = matches!(it.end, ModelEnd::Cancelled {} | ModelEnd::OwnerLost {});
        let guessed = Usage {
            input: self.context_tokens,
            ..Usage::default()
        };
        let guessed = Some(guessed).filter(|it| cut_off && it.input > 0);
        let usage = it.usage.or(guessed).unwrap_or_default();
        let nano_usd = it.nano_usd.unwrap_or_default();
        turn.spent.add(usage.total(), nano_usd);
        self.spent.add(usage.total(), nano_usd);
        let budgets = [&self.settings.turn_budget, &self.settings.thread_budget];
        let counts = |it: &&SpendLimits| it.tokens.is_some() || it.nano_usd.is_some();
        // Of a call that came to no good end most providers do not say; who says nothing of a whole answer never does.
        let is_silent = it.estimated && matches!(it.end, ModelEnd::Done {});
        self.spent.is_estimated |= is_silent && budgets.iter().any(counts);
        let asked = &self.asked;
        let mut accounts = self.accounts.iter();
        let at = accounts.position(|it| it.provider == asked.provider && it.model == asked.model);
        let last = accounts_max() - 1;
        let at = at.unwrap_or_else(|| {
            if self.accounts.len() <= last {
                let is_last = self.accounts.len() == last;
                let named = |name: &Option<String>| name.clone().filter(|_| !is_last);
                self.accounts.push(ModelUsage {
                    provider: named(&asked.provider),
                    model: named(&asked.model),
                    ..ModelUsage::default()
                });
            }
            self.accounts.len() - 1
        });
        let account = &mut self.accounts[at];
        account.calls += 1;
        account.usage = account.usage.plus(&usage);
        account.nano_usd = account.nano_usd.saturating_add(nano_usd);
        account.unpriced += u64::from(usage.total() > 0 && it.nano_usd.is_none());
        account.estimated += u64::from(it.estimated || it.usage.is_none() && guessed.is_some());
    }

    /// A tool was started.
    pub(super) fn count_tool(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.spent.tool_calls += 1;
        }
        self.spent.tool_calls += 1;
    }

    /// Someone was told something, perhaps of a budget.
    pub(super) fn note_warning(&mut self, warned: &Warned) {
        self.spent.is_estimate_told |= warned.estimated;
        let Some(it) = &warned.budget else {
            return;
        };
        let spent = match it.scope {
            Scope::Turn => self.turn.as_mut().map(|turn| &mut turn.spent),
            Scope::Thread => Some(&mut self.spent),
        };
        if let Some(spent) = spent {
            spent.warned.insert(it.measure, it.limit);
        }
    }

    /// A turn ended, and its time counts.
    pub(super) fn count_time(&mut self, ms: u64) {
        self.spent.ms = self.spent.ms.saturating_add(ms);
    }

    /// What was used before was another thread's, and so is what is left of its turn.
    pub(super) fn begin_accounts(&mut self) {
        self.spent = BudgetUsage::default();
        self.accounts.clear();
        if let Some(turn) = &mut self.turn {
            turn.charged_from = None;
        }
    }
}

fn warning(warned: Warned) -> RecordBody {
    Event::Warned(warned).into()
}

impl OpenTurn {
    /// From when on a turn is paid for: what the user runs is not, before the model is called.
    pub(super) fn charged_since(kind: TurnKind, at: Timestamp) -> Option<Timestamp> {
        (kind != TurnKind::Shell).then_some(at)
    }

    /// For how long it has been paid for.
    pub(super) fn charged_ms(&self, now: Timestamp) -> u64 {
        let since = self.charged_from.map_or(0, |from| now.since(from));
        u64::try_from(since).unwrap_or_default()
    }
}
