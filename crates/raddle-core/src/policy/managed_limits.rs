//! Limits that the operator enforces, whatever users and clients want.

use super::UnattendedPolicy;
use crate::{
    ApprovalPolicy, Failure, Grant, Measure, Price, Sandbox, Scope, Settings, SpendLimits, Spending,
};

/// Limits of the operator; none by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ManagedLimits {
    /// Approval policies that threads may have; `None` allows all.
    pub approvals: Option<Vec<ApprovalKind>>,
    /// Sandboxes that threads may have; `None` allows all.
    pub sandboxes: Option<Vec<SandboxKind>>,
    /// Whether no thread may use the network.
    pub network_off: bool,
    /// Handling of requests that get no answer.
    pub unattended: Option<UnattendedPolicy>,
    /// Maximum budget of each turn.
    pub turn_budget: SpendLimits,
    /// Maximum budget of all turns of a thread together.
    pub thread_budget: SpendLimits,
}

/// An approval policy without its details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalKind {
    /// Named `untrusted` in configuration files.
    Untrusted,
    /// Named `on-request` in configuration files.
    OnRequest,
    /// Named `granular` in configuration files.
    Granular,
    /// Named `never` in configuration files.
    Never,
}

/// A sandbox without its details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxKind {
    /// Named `read-only` in configuration files.
    ReadOnly,
    /// Named `workspace-write` in configuration files.
    WorkspaceWrite,
    /// Named `danger-full-access` in configuration files.
    FullAccess,
    /// Named `external` in configuration files.
    External,
}

impl ApprovalKind {
    /// Every kind, with its name in configuration files.
    pub const ALL: [(Self, &str); 4] = [
        (Self::Untrusted, "untrusted"),
        (Self::OnRequest, "on-request"),
        (Self::Granular, "granular"),
        (Self::Never, "never"),
    ];

    fn of(policy: &ApprovalPolicy) -> Self {
        match policy {
            ApprovalPolicy::Untrusted => Self::Untrusted,
            ApprovalPolicy::OnRequest => Self::OnRequest,
            ApprovalPolicy::Granular(_) => Self::Granular,
            ApprovalPolicy::Never => Self::Never,
        }
    }
}

impl SandboxKind {
    /// Every kind, with its name in configuration files.
    pub const ALL: [(Self, &str); 4] = [
        (Self::ReadOnly, "read-only"),
        (Self::WorkspaceWrite, "workspace-write"),
        (Self::FullAccess, "danger-full-access"),
        (Self::External, "external"),
    ];

    fn of(sandbox: &Sandbox) -> Self {
        match sandbox {
            Sandbox::ReadOnly { .. } => Self::ReadOnly,
            Sandbox::WorkspaceWrite { .. } => Self::WorkspaceWrite,
            Sandbox::FullAccess => Self::FullAccess,
            Sandbox::External { .. } => Self::External,
        }
    }
}

impl ManagedLimits {
    /// Combines these limits with those of another file; the stricter of each holds.
    pub fn and(self, other: Self) -> Self {
        Self {
            approvals: both(self.approvals, other.approvals),
            sandboxes: both(self.sandboxes, other.sandboxes),
            network_off: self.network_off || other.network_off,
            unattended: match (self.unattended, other.unattended) {
                (Some(a), Some(b)) => Some(a.stricter(b)),
                (a, b) => a.or(b),
            },
            turn_budget: self.turn_budget.and(&other.turn_budget),
            thread_budget: self.thread_budget.and(&other.thread_budget),
        }
    }

    /// Returns the objection to a thread's settings, with the remedy; `None` if they are allowed.
    pub fn objection(&self, settings: &Settings) -> Option<String> {
        let approval = ApprovalKind::of(&settings.approval);
        if let Some(list) = &self.approvals
            && !list.contains(&approval)
        {
            return Some(not_listed(
                "approval policy",
                &ApprovalKind::ALL,
                approval,
                list,
            ));
        }
        self.sandbox_objection(&settings.sandbox)
    }

    /// Returns the objection to a sandbox, with the remedy; `None` if it is allowed.
    pub(super) fn sandbox_objection(&self, sandbox: &Sandbox) -> Option<String> {
        let kind = SandboxKind::of(sandbox);
        if let Some(list) = &self.sandboxes
            && !list.contains(&kind)
        {
            return Some(not_listed("sandbox", &SandboxKind::ALL, kind, list));
        }
        if self.network_off && network(sandbox) {
            return Some(
                "the managed policy keeps the network off; choose a sandbox without it".to_owned(),
            );
        }
        None
    }

    /// Returns the objection to a model call with these settings, price and usage so far: a budget
    /// of the operator is spent, or a budget in money has no price to count by.
    pub fn call_objection(
        &self,
        settings: &Settings,
        price: Option<&Price>,
        used: &[(Scope, Measure, u64)],
    ) -> Option<Failure> {
        let mut limited = settings.clone();
        limited.turn_budget = limited.turn_budget.and(&self.turn_budget);
        limited.thread_budget = limited.thread_budget.and(&self.thread_budget);
        let spending = |(scope, measure, spent): &(Scope, Measure, u64)| {
            let limit = match scope {
                Scope::Turn => self.turn_budget.of(*measure)?,
                Scope::Thread => self.thread_budget.of(*measure)?,
            };
            let spent = Some(*spent);
            Some(Spending {
                scope: *scope,
                measure: *measure,
                spent,
                limit,
            })
        };
        let mut spent = used.iter().filter_map(spending).filter(Spending::is_over);
        let over = spent.next().map(Failure::managed_budget_exhausted);
        over.or_else(|| limited.unpriced(price))
    }

    /// Returns the settings with the sandbox widened by granted rights. The operator's limits may
    /// have become stricter since: rights that they forbid now are left out.
    pub fn widened(&self, settings: &Settings, rights: &Grant) -> Settings {
        let mut settings = settings.clone();
        let before = Box::new(settings.sandbox.clone());
        let (write, network) = match &mut settings.sandbox {
            Sandbox::ReadOnly { roots, network, .. }
            | Sandbox::WorkspaceWrite { roots, network, .. } => (roots, network),
            Sandbox::FullAccess | Sandbox::External { .. } => return settings,
        };
        if !self.always_sandboxed() {
            write.extend(rights.write.iter().cloned());
            *network |= rights.network && !self.network_off;
            settings.sandbox_without_grants.get_or_insert(before);
        }
        settings
    }

    /// Whether the operator requires a sandbox in every case.
    pub(super) fn always_sandboxed(&self) -> bool {
        let open = SandboxKind::FullAccess;
        self.sandboxes
            .as_ref()
            .is_some_and(|it| !it.contains(&open))
    }
}

/// Whether commands in this sandbox may use the network.
pub(super) fn network(sandbox: &Sandbox) -> bool {
    match sandbox {
        Sandbox::FullAccess => true,
        Sandbox::ReadOnly { network, .. }
        | Sandbox::WorkspaceWrite { network, .. }
        | Sandbox::External { network } => *network,
    }
}

fn both<T: PartialEq>(a: Option<Vec<T>>, b: Option<Vec<T>>) -> Option<Vec<T>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.into_iter().filter(|it| b.contains(it)).collect()),
        (a, b) => a.or(b),
    }
}

fn not_listed<T: PartialEq>(what: &str, names: &[(T, &str)], it: T, list: &[T]) -> String {
    let name = |value: &T| {
        names
            .iter()
            .find(|(it, _)| it == value)
            .map_or("", |it| it.1)
    };
    let list: Vec<&str> = list.iter().map(name).collect();
    let list = match list[..] {
        [] => "it allows none".to_owned(),
        _ => format!("choose one of: {}", list.join(", ")),
    };
    format!(
        "the managed policy does not allow the {what} {}; {list}",
        name(&it)
    )
}
