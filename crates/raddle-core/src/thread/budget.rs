//! Usage, and its limits where there is a budget. Counting is part of the fold, so it survives a
//! change of owner, and nothing is counted twice.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::state::CalledModel;
use super::{OpenItem, OpenTurn, Thread};
use crate::{
    Event, Failure, FailureKind, Gate, Measure, ModelEnd, ModelEnded, ModelUsed, Price, RecordBody,
    Scope, Settings, SpendLimits, Spending, Timestamp, TurnKind, Usage, Warned,
};

/// Maximum number of models with a separate account; the usage of all others is counted together.
fn accounts_max() -> usize {
    crate::bugs::bound(64, 3)
}

/// Amounts used in a turn or thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BudgetUsage {
    tokens: u64,
    nano_usd: u64,
    /// Time of ended turns.
    ms: u64,
    tool_calls: u64,
    /// Limits of which the user was warned that they are near.
    warned: BTreeMap<Measure, u64>,
    /// Whether a budget counts estimated tokens.
    is_estimated: bool,
    /// Whether the user was warned of that.
    #[serde(rename = "isEstimateTold")]
    is_estimate_announced: bool,
}

/// Usage of one model in a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelUsage {
    /// Provider, as the settings named it.
    pub provider: Option<String>,
    /// Model, as the settings named it.
    pub model: Option<String>,
    /// Number of its calls.
    pub calls: u64,
    /// Tokens of all its calls.
    pub usage: Usage,
    /// Cost of the calls with a known price, in billionths of a dollar.
    pub nano_usd: u64,
    /// Number of calls that used tokens and had no price.
    pub unpriced: u64,
    /// Number of calls with estimated tokens.
    pub estimated: u64,
}

/// Usage of a call, as it is charged.
struct ChargedUsage {
    usage: Usage,
    nano_usd: Option<u64>,
    is_estimated: bool,
    /// Whether its provider reports no usage.
    is_silent: bool,
}

impl ModelUsage {
    /// Adds a call.
    fn add(&mut self, used: &ChargedUsage) {
        self.calls += 1;
        self.usage = self.usage.plus(&used.usage);
        self.nano_usd = self
            .nano_usd
            .saturating_add(used.nano_usd.unwrap_or_default());
        self.unpriced += u64::from(used.usage.total() > 0 && used.nano_usd.is_none());
        self.estimated += u64::from(used.is_estimated);
    }
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
    /// Limits of a turn or of a thread.
    pub fn limits(&self, scope: Scope) -> &SpendLimits {
        match scope {
            Scope::Turn => &self.turn_budget,
            Scope::Thread => &self.thread_budget,
        }
    }

    /// Returns the objection to a model call at this price: there is a budget in money, and the
    /// cost of the call is unknown.
    pub fn unpriced(&self, price: Option<&Price>) -> Option<Failure> {
        let mut scopes = [Scope::Turn, Scope::Thread].into_iter();
        let usd_limit = scopes.find_map(|it| Some((it, self.limits(it).nano_usd?)));
        let (scope, limit) = usd_limit.filter(|_| price.is_none())?;
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
             set it under [[prices]] in config.toml, or remove budget.{}.usd",
            scope.key()
        );
        Some(Failure {
            budget: Some(spending),
            ..Failure::new(FailureKind::BudgetSpent, message)
        })
    }
}

impl Failure {
    /// Creates the failure for a spent budget.
    pub fn budget_exhausted(spending: Spending) -> Self {
        let more = match spending.scope {
            Scope::Turn => "the next turn has a new budget".to_owned(),
            Scope::Thread => format!(
                "raise budget.{}.{}, with `raddle exec resume -c`, or in the settings of the thread \
                 in your client",
                spending.scope.key(),
                spending.measure.key()
            ),
        };
        let message = format!("the budget is {}: {spending}; {more}", spending.state());
        Self {
            budget: Some(spending),
            ..Self::new(FailureKind::BudgetSpent, message)
        }
    }

    /// Creates the failure for a spent budget of the managed policy.
    pub(crate) fn managed_budget_exhausted(spending: Spending) -> Self {
        let state = spending.state();
        let message = format!("the budget of the managed policy is {state}: {spending}");
        Self {
            message,
            ..Self::budget_exhausted(spending)
        }
    }
}

impl Thread {
    /// Returns every budget with the amount spent. Budgets of a turn are included while one runs.
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

    /// Returns the usage of every measure that may have a budget.
    pub fn used(&self, now: Timestamp) -> Vec<(Scope, Measure, u64)> {
        let scopes = [Scope::Turn, Scope::Thread].into_iter();
        let each = scopes.flat_map(|scope| Measure::ALL.map(|measure| (scope, measure)));
        each.map(|(scope, measure)| (scope, measure, self.spent_of(scope, measure, now)))
            .collect()
    }

    /// Returns the usage of each model, in the order of their first calls.
    pub fn model_usage(&self) -> &[ModelUsage] {
        &self.accounts
    }

    /// Returns the cost of all calls with a known price, in billionths of a dollar.
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

    /// Returns the objection to a model call of a running tool: a budget is used up.
    pub fn budget_objection(&self, now: Timestamp) -> Option<Failure> {
        self.exhausted_for_call(now).map(Failure::budget_exhausted)
    }

    /// Returns the first of these budgets that is used up.
    fn exhausted(&self, measures: &[Measure], now: Timestamp) -> Option<Spending> {
        let spending = self.spending(now).into_iter();
        let mut spending = spending.filter(|it| measures.contains(&it.measure));
        spending.find(Spending::is_over)
    }

    /// Returns the budget that forbids a model call.
    pub(super) fn exhausted_for_call(&self, now: Timestamp) -> Option<Spending> {
        self.exhausted(&[Measure::Tokens, Measure::Usd, Measure::Seconds], now)
    }

    /// Returns the budget that forbids the next tool, if there is one to start.
    pub(super) fn exhausted_for_tool(&self, turn: &OpenTurn, now: Timestamp) -> Option<Spending> {
        let is_to_start = |open: &OpenItem| {
            let is_run =
                open.is_tool() && (open.gate != Some(Gate::Answer) || open.is_client_tool());
            is_run && !open.started && !self.is_with_client(&open.item.id)
        };
        let starts_tool = turn.items.iter().any(is_to_start);
        starts_tool.then(|| self.exhausted(&[Measure::ToolCalls], now))?
    }

    /// Returns the time budget that is used up, whatever the turn waits for.
    pub(super) fn exhausted_time(&self, now: Timestamp) -> Option<Spending> {
        self.turn.as_ref()?.charged_from?;
        self.exhausted(&[Measure::Seconds], now)
    }

    /// Returns a warning that was not given yet: that a budget counts estimates, is nearly
    /// spent, or was exceeded by one call.
    pub(super) fn budget_warning(&self, now: Timestamp) -> Option<RecordBody> {
        if self.spent.is_estimated && !self.spent.is_estimate_announced {
            let message = "The provider does not report token usage. Budgets count an estimate: \
                           one token for four bytes.";
            return Some(warning(Warned {
                estimated: true,
                ..Warned::of(message)
            }));
        }
        let spending = self.spending(now).into_iter();
        let mut near = spending.filter(|it| it.is_near() && !self.was_warned(it));
        let it = near.next()?;
        let scope = it.scope.key();
        let message = format!(
            "A budget is {}: {it} (budget.{scope}.{}).",
            it.state(),
            it.measure.key()
        );
        Some(warning(Warned {
            budget: Some(it),
            ..Warned::of(message)
        }))
    }

    fn was_warned(&self, it: &Spending) -> bool {
        let spent = match it.scope {
            Scope::Turn => self.turn.as_ref().map(|turn| &turn.spent),
            Scope::Thread => Some(&self.spent),
        };
        spent.is_some_and(|spent| spent.warned.get(&it.measure) == Some(&it.limit))
    }

    /// Returns the time at which a time budget is nearly spent, or spent.
    pub(super) fn time_limit_at(&self) -> Option<Timestamp> {
        let turn = self.turn.as_ref()?;
        let since = turn.charged_from.filter(|_| turn.stopping.is_none())?;
        let spending = self.spending(since).into_iter();
        let times = spending.filter(|it| it.measure == Measure::Seconds);
        let until = times.map(|it| {
            // Rounded up, so that the limit is near at that time.
            let near = u64::try_from((u128::from(it.limit) * 4).div_ceil(5));
            let end = match self.was_warned(&it) {
                true => it.limit,
                false => near.unwrap_or(it.limit),
            };
            let remaining = end.saturating_sub(it.spent.unwrap_or_default());
            since.plus_ms(i64::try_from(remaining).unwrap_or(i64::MAX))
        });
        until.min()
    }

    /// Charges a model call that ended.
    pub(super) fn charge(&mut self, it: &ModelEnded) {
        // The usage of a call that was cut off is unknown. It read at least the context.
        let cut_off = matches!(it.end, ModelEnd::Cancelled {} | ModelEnd::OwnerLost {});
        let guessed = Usage {
            input: self.context_tokens,
            ..Usage::default()
        };
        let guessed = Some(guessed).filter(|it| cut_off && it.input > 0);
        let used = ChargedUsage {
            usage: it.usage.or(guessed).unwrap_or_default(),
            nano_usd: it.nano_usd,
            is_estimated: it.estimated || it.usage.is_none() && guessed.is_some(),
            // Most providers report nothing for a call that failed. One that reports nothing for a
            // complete answer never does.
            is_silent: it.estimated && matches!(it.end, ModelEnd::Done {}),
        };
        self.charge_to(&self.asked.clone(), &used);
    }

    /// Charges a model call of a running tool.
    pub(super) fn charge_use(&mut self, it: &ModelUsed) {
        let called = CalledModel {
            model: it.model.clone(),
            provider: it.provider.clone(),
        };
        let used = ChargedUsage {
            usage: it.usage,
            nano_usd: it.nano_usd,
            is_estimated: it.estimated,
            is_silent: it.estimated,
        };
        self.charge_to(&called, &used);
    }

    /// Charges a call to the turn, the thread and the account of its model.
    fn charge_to(&mut self, called: &CalledModel, used: &ChargedUsage) {
        let turn = self.turn.as_mut();
        let Some(turn) = turn.filter(|turn| turn.charged_from.is_some()) else {
            return;
        };
        let nano_usd = used.nano_usd.unwrap_or_default();
        turn.spent.add(used.usage.total(), nano_usd);
        self.spent.add(used.usage.total(), nano_usd);
        self.spent.is_estimated |= used.is_silent && self.has_usage_budget();
        self.account_of(called).add(used);
    }

    /// Whether a budget counts what models use.
    fn has_usage_budget(&self) -> bool {
        let budgets = [&self.settings.turn_budget, &self.settings.thread_budget];
        let counts = |it: &&SpendLimits| it.tokens.is_some() || it.nano_usd.is_some();
        budgets.iter().any(counts)
    }

    /// Returns the account of a model.
    fn account_of(&mut self, called: &CalledModel) -> &mut ModelUsage {
        let mut accounts = self.accounts.iter();
        let at = accounts.position(|it| it.provider == called.provider && it.model == called.model);
        let last = accounts_max() - 1;
        let at = at.unwrap_or_else(|| {
            if self.accounts.len() <= last {
                let is_last = self.accounts.len() == last;
                let named = |name: &Option<String>| name.clone().filter(|_| !is_last);
                self.accounts.push(ModelUsage {
                    provider: named(&called.provider),
                    model: named(&called.model),
                    ..ModelUsage::default()
                });
            }
            self.accounts.len() - 1
        });
        &mut self.accounts[at]
    }

    /// Counts a started tool.
    pub(super) fn count_tool(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.spent.tool_calls += 1;
        }
        self.spent.tool_calls += 1;
    }

    /// Stores that the user was warned of a budget, if the warning is about one.
    pub(super) fn note_warning(&mut self, warned: &Warned) {
        self.spent.is_estimate_announced |= warned.estimated;
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

    /// Counts the time of an ended turn.
    pub(super) fn count_time(&mut self, ms: u64) {
        self.spent.ms = self.spent.ms.saturating_add(ms);
    }

    /// Resets the accounts: earlier usage, and the rest of the open turn, belong to another thread.
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
    /// Returns when charging of a turn starts. `None` for a user's own command, which is free until
    /// the model is called.
    pub(super) fn charged_since(kind: TurnKind, at: Timestamp) -> Option<Timestamp> {
        (kind != TurnKind::Shell).then_some(at)
    }

    /// Returns the charged time so far.
    pub(super) fn charged_ms(&self, now: Timestamp) -> u64 {
        let since = self.charged_from.map_or(0, |from| now.since(from));
        u64::try_from(since).unwrap_or_default()
    }
}
