//! What whoever runs the machine holds fast, whatever users and clients want.

use super::UnattendedPolicy;
use crate::{
    ApprovalPolicy, Failure, Grant, Measure, Price, Sandbox, Scope, Settings, SpendLimits, Spending,
};

/// What is held fast. Nothing by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ManagedLimits {
    /// The approval policies that threads may have; all if nothing is said.
    pub approvals: Option<Vec<ApprovalKind>>,
    /// The sandboxes that threads may have; all if nothing is said.
    pub sandboxes: Option<Vec<SandboxKind>>,
    /// Whether no thread may use the network.
    pub network_off: bool,
    /// What happens where nobody answers.
    pub unattended: Option<UnattendedPolicy>,
    /// What each turn may use at the most.
    pub turn_budget: SpendLimits,
    /// What all turns of a thread may use at the most.
    pub thread_budget: SpendLimits,
}

/// An approval policy without its details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalKind {
    /// `untrusted`
    Untrusted,
    /// `on-request`
    OnRequest,
    /// `granular`
    Granular,
    /// `never`
    Never,
}

/// A sandbox without its details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxKind {
    /// `read-only`
    ReadOnly,
    /// `workspace-write`
    WorkspaceWrite,
    /// `danger-full-access`
    FullAccess,
    /// `external`
    External,
}

impl ApprovalKind {
    /// All, and their names in files.
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
    /// All, and their names in files.
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
    /// These and those of another file. What either holds fast stays so.
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

    /// What is wrong with a thread's settings, and what to do; nothing if they may be.
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
        self.against(&settings.sandbox)
    }

    /// What is wrong with a sandbox, and what to do; nothing if it may be.
    pub(super) fn against(&self, sandbox: &Sandbox) -> Option<String> {
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

    /// What stands against a call of the model with these settings, at this price, where so much is used: a budget is
    /// spent that the operator set, or one of money cannot be kept.
    pub fn against_call(
        &self,
        settings: &Settings,
        price: Option<&Price>,
        used: &[(Scope, Measure, u64)],
    ) -> Option<Failure> {
        let mut held = settings.clone();
        held.turn_budget = held.turn_budget.and(&self.turn_budget);
        held.thread_budget = held.thread_budget.and(&self.thread_budget);
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
        over.or_else(|| held.unpriced(price))
    }

    /// These settings with the fence as wide as rights make it that were given. Whoever runs the machine may
    /// have become stricter since: what they would not let anyone give now is not there any more.
    pub fn widened(&self, settings: &Settings, rights: &Grant) -> Settings {
        let mut settings = settings.clone();
        let (write, network) = match &mut settings.sandbox {
            Sandbox::ReadOnly { roots, network }
            | Sandbox::WorkspaceWrite { roots, network, .. } => (roots, network),
            Sandbox::FullAccess | Sandbox::External { .. } => return settings,
        };
        if !self.always_sandboxed() {
            write.extend(rights.write.iter().cloned());
            *network |= rights.network && !self.network_off;
        }
        settings
    }

    /// Whether the operator wants a sandbox in every case.
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
    let name = |wanted: &T| {
        names
            .iter()
            .find(|(it, _)| it == wanted)
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
