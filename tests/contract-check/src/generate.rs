//! Generator of instances of a shape, which takes every choice often enough.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Number, Value, json};
use support::{Rng, hash};

use crate::shape::{
    ABSENT, ANYTHING, ChoiceId, Graph, Member, NULL, NodeId, Object, Range, Shape, VALUE,
};

/// Number of values after which an instance closes its open parts in the shortest way.
const VALUES_MAX: usize = 3_000;
/// Number of values after which choices that are already covered are kept small. `DEPTH_EASY` is
/// the same limit for the depth.
const VALUES_EASY: usize = 200;
const DEPTH_EASY: usize = 8;
const DEPTH_MAX: usize = 40;
/// Number of instances without progress after which a root counts as impossible to cover.
const INSTANCES_IDLE_MAX: usize = 300;

const TEXTS: [&str; 8] = [
    "word",
    "two words",
    "",
    "/a/path",
    "\"quoted\" \\ and\nbroken",
    "ünïcode ✓ 𝄞",
    "42",
    "null",
];

/// How members that the schema does not require are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nulls {
    /// Null only where the schema allows it.
    AsDeclared,
    /// Null for every optional member.
    Everywhere,
}

/// A generated value, with the data needed to compare it with its copy.
#[derive(Debug, Default)]
pub struct Instance {
    pub value: Value,
    /// Members that are absent or null although they need not be, by JSON pointer.
    pub unstated: HashMap<String, AbsentValue>,
    /// Whether it holds a value that must not be recognized.
    pub open: bool,
    /// Whether it holds a variant that only we have.
    pub is_added: bool,
}

/// Value that an omitted member may have in the copy.
#[derive(Clone, Debug, PartialEq)]
pub enum AbsentValue {
    /// Null, and nothing else.
    Null,
    /// The default that the schema declares.
    Default(Value),
    /// False or an empty list, because the schema declares neither null nor a default.
    Nothing,
}

pub struct Generator<'g> {
    graph: &'g Graph,
    root: NodeId,
    rounds: u32,
    nulls: Nulls,
    rng: Rng,
    counts: Vec<Vec<u32>>,
    /// The choices to cover, each with its node.
    open_choices: Vec<(ChoiceId, NodeId)>,
    parents: HashMap<NodeId, Vec<NodeId>>,
    /// Nodes below which some option is not covered yet.
    has_uncovered: Vec<bool>,
    heights: &'g [usize],
    /// Nodes whose values another generator creates.
    delegates: HashMap<NodeId, Generator<'g>>,
    /// Variants that only we have.
    added: HashSet<NodeId>,
    idle: usize,
    // State of the instance in progress.
    value_count: usize,
    picks: Vec<(ChoiceId, usize)>,
    open_picks: Vec<(ChoiceId, usize)>,
}

impl<'g> Generator<'g> {
    pub fn new(
        graph: &'g Graph,
        heights: &'g [usize],
        root: NodeId,
        name: &str,
        rounds: u32,
        nulls: Nulls,
    ) -> Self {
        let mut parents: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
        let mut open_choices = Vec::new();
        let reach = graph.reach(root);
        for &node in &reach {
            open_choices.extend(graph.nodes[node].choice.map(|choice| (choice, node)));
            if let Shape::Object(object) = &graph.nodes[node].shape {
                open_choices.extend(
                    object
                        .members
                        .iter()
                        .filter_map(|it| Some((it.presence?, node))),
                );
            }
            for child in graph.children(node) {
                parents.entry(child).or_default().push(node);
            }
        }
        let mut counts = vec![Vec::new(); graph.choices.len()];
        for (choice, _) in &open_choices {
            counts[*choice] = vec![0; graph.choices[*choice].options.len()];
        }
        let mut generator = Self {
            graph,
            root,
            rounds,
            nulls,
            // Each part has its own sequence, so that the result does not depend on their order.
            rng: Rng::from_state(hash(name.as_bytes())),
            counts,
            open_choices,
            parents,
            has_uncovered: vec![false; graph.nodes.len()],
            heights,
            delegates: HashMap::new(),
            added: HashSet::new(),
            idle: 0,
            value_count: 0,
            picks: Vec::new(),
            open_picks: Vec::new(),
        };
        generator.settle_options();
        generator
    }

    /// Delegates the values of a node to another generator. Choices below it are no longer covered
    /// here.
    pub fn delegate(&mut self, node: NodeId, delegate_generator: Generator<'g>) {
        self.delegates.insert(node, delegate_generator);
        self.open_choices.retain(|(_, at)| *at != node);
    }

    /// Sets the variants that only we have.
    pub fn mark_added(&mut self, added: &HashSet<NodeId>) {
        self.added.clone_from(added);
    }

    /// Returns the next instance, or `None` when every option is covered or cannot be.
    pub fn next(&mut self) -> Option<Instance> {
        if self.open_choices.is_empty() {
            // Without choices there is only one form; it is generated as often as any option.
            if self.idle >= self.rounds as usize {
                return None;
            }
            self.idle += 1;
            return Some(self.make());
        }
        let before = self.missing_count();
        if before == 0 || self.idle > INSTANCES_IDLE_MAX {
            return None;
        }
        let instance = self.make();
        self.idle = if self.missing_count() < before {
            0
        } else {
            self.idle + 1
        };
        Some(instance)
    }

    /// Returns the number of options to cover.
    pub fn options(&self) -> usize {
        self.open_choices
            .iter()
            .map(|(choice, _)| self.counts[*choice].len())
            .sum()
    }

    /// Returns the options that were not taken often enough.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for (choice, _) in &self.open_choices {
            for (option, count) in self.counts[*choice].iter().enumerate() {
                if *count < self.rounds {
                    let choice = &self.graph.choices[*choice];
                    missing.push(format!("{}: {}", choice.path, choice.options[option]));
                }
            }
        }
        missing
    }

    /// Returns the number of options that were taken often enough.
    pub fn covered(&self) -> usize {
        let enough = |choice: &ChoiceId| {
            self.counts[*choice]
                .iter()
                .filter(|count| **count >= self.rounds)
                .count()
        };
        self.open_choices
            .iter()
            .map(|(choice, _)| enough(choice))
            .sum()
    }

    fn missing_count(&self) -> u32 {
        let lack = |choice: &ChoiceId| -> u32 {
            self.counts[*choice]
                .iter()
                .map(|count| self.rounds.saturating_sub(*count))
                .sum()
        };
        self.open_choices
            .iter()
            .map(|(choice, _)| lack(choice))
            .sum()
    }

    /// Removes the option null from members that may not be null.
    fn settle_options(&mut self) {
        if self.nulls == Nulls::Everywhere {
            return;
        }
        for (_, node) in &self.open_choices {
            let Shape::Object(object) = &self.graph.nodes[*node].shape else {
                continue;
            };
            for member in &object.members {
                if let Some(presence) = member.presence
                    && !may_be_null(self.graph, member.node)
                {
                    self.counts[presence].truncate(NULL);
                }
            }
        }
    }

    fn make(&mut self) -> Instance {
        self.mark_uncovered();
        self.value_count = 0;
        self.picks.clear();
        self.open_picks.clear();
        let mut instance = Instance::default();
        let mut pointer = String::new();
        instance.value = self.value(self.root, &mut pointer, 0, &mut instance);
        if instance.open {
            // Beside a value that must not be recognized, another unrecognized value would go
            // unnoticed. So only the choices of the open variant count.
            for (choice, option) in self.picks.drain(..) {
                self.counts[choice][option] -= 1;
            }
            for (choice, option) in self.open_picks.drain(..) {
                self.counts[choice][option] += 1;
            }
        }
        instance
    }

    /// Marks the nodes from which an uncovered option can be reached.
    fn mark_uncovered(&mut self) {
        self.has_uncovered.fill(false);
        let mut queue = Vec::new();
        for (choice, node) in &self.open_choices {
            let is_uncovered = self.counts[*choice]
                .iter()
                .any(|count| *count < self.rounds);
            if is_uncovered && !std::mem::replace(&mut self.has_uncovered[*node], true) {
                queue.push(*node);
            }
        }
        while let Some(node) = queue.pop() {
            for parent in self.parents.get(&node).into_iter().flatten() {
                if !std::mem::replace(&mut self.has_uncovered[*parent], true) {
                    queue.push(*parent);
                }
            }
        }
    }

    /// Picks an option: first one that was taken too rarely, then one that leads to such an option,
    /// then any. `leads` names the node behind each option, if there is one.
    fn pick(&mut self, choice: ChoiceId, leads: &[Option<NodeId>], depth: usize) -> usize {
        let counts = &self.counts[choice];
        let open: Vec<usize> = (0..counts.len()).collect();
        let cost = |option: &usize| leads[*option].map_or(0, |node| self.heights[node] + 1);
        let best = if self.value_count > VALUES_MAX || depth > DEPTH_MAX {
            let least = open.iter().map(cost).min();
            open.into_iter()
                .filter(|option| Some(cost(option)) == least)
                .collect()
        } else if let Some(least) = counts.iter().min().filter(|least| **least < self.rounds) {
            open.into_iter()
                .filter(|option| counts[*option] == *least)
                .collect()
        } else {
            let leads_to_uncovered =
                |option: &&usize| leads[**option].is_some_and(|node| self.has_uncovered[node]);
            let towards: Vec<usize> = open.iter().filter(leads_to_uncovered).copied().collect();
            if !towards.is_empty() {
                towards
            } else if self.value_count > VALUES_EASY || depth > DEPTH_EASY {
                let least = open.iter().map(cost).min();
                open.into_iter()
                    .filter(|option| Some(cost(option)) == least)
                    .collect()
            } else {
                open
            }
        };
        let option = *self.rng.pick(&best);
        self.counts[choice][option] += 1;
        self.picks.push((choice, option));
        option
    }

    fn value(
        &mut self,
        id: NodeId,
        pointer: &mut String,
        depth: usize,
        into: &mut Instance,
    ) -> Value {
        self.value_count += 1;
        into.is_added |= self.added.contains(&id);
        if let Some(delegate) = self.delegates.get_mut(&id) {
            let inner = delegate.make();
            for (below, unstated) in inner.unstated {
                into.unstated.insert(format!("{pointer}{below}"), unstated);
            }
            return inner.value;
        }
        let graph = self.graph;
        let node = &graph.nodes[id];
        let choice = node.choice;
        match &node.shape {
            Shape::Null => Value::Null,
            Shape::Any => self.anything(choice, depth),
            Shape::Boolean => Value::Bool(self.option(choice, &[None, None], depth) == 1),
            Shape::Integer(range) => self.integer(*range),
            Shape::Number => json!(*self.rng.pick(&[0.5, -2.25, 1e10, 3.0])),
            Shape::Text { least } => Value::String(self.text(*least)),
            Shape::Uuid => Value::String(uuid(&mut self.rng)),
            Shape::Values(values) => {
                values[self.option(choice, &vec![None; values.len()], depth)].clone()
            }
            Shape::Nullable(inner) => match self.option(choice, &[None, Some(*inner)], depth) {
                0 => Value::Null,
                _ => self.value(*inner, pointer, depth + 1, into),
            },
            Shape::Array(items) => {
                let length = self.option(choice, &[None, Some(*items), Some(*items)], depth);
                let entry = |index| self.below(*items, &format!("/{index}"), pointer, depth, into);
                Value::Array((0..length).map(entry).collect())
            }
            Shape::Map(values) => {
                let length = self.option(choice, &[None, Some(*values), Some(*values)], depth);
                let mut map = Map::new();
                for index in 0..length {
                    let key = self.key(index);
                    let entry = self.below(*values, &format!("/{key}"), pointer, depth, into);
                    map.insert(key, entry);
                }
                Value::Object(map)
            }
            Shape::Object(object) => self.object(choice, object, pointer, depth, into),
            Shape::Union(arms) => {
                let leads: Vec<Option<NodeId>> = arms.iter().copied().map(Some).collect();
                let arm = self.option(choice, &leads, depth);
                self.value(arms[arm], pointer, depth + 1, into)
            }
            Shape::Open(inner) => {
                // The previous entry is the choice that led here.
                let from = self.picks.len().saturating_sub(1);
                let value = self.value(*inner, pointer, depth + 1, into);
                self.open_picks.extend_from_slice(&self.picks[from..]);
                into.open = true;
                value
            }
        }
    }

    fn option(
        &mut self,
        choice: Option<ChoiceId>,
        leads: &[Option<NodeId>],
        depth: usize,
    ) -> usize {
        choice.map_or(0, |choice| self.pick(choice, leads, depth))
    }

    fn below(
        &mut self,
        node: NodeId,
        step: &str,
        pointer: &mut String,
        depth: usize,
        into: &mut Instance,
    ) -> Value {
        let length = pointer.len();
        pointer.push_str(step);
        let value = self.value(node, pointer, depth + 1, into);
        pointer.truncate(length);
        value
    }

    fn object(
        &mut self,
        choice: Option<ChoiceId>,
        object: &Object,
        pointer: &mut String,
        depth: usize,
        into: &mut Instance,
    ) -> Value {
        let mut map = Map::new();
        // Varies the order, so that an instance that grew too large does not always lack the same
        // members.
        let start = self.rng.index(object.members.len().max(1));
        for index in 0..object.members.len() {
            let member = &object.members[(start + index) % object.members.len()];
            let inner = self.graph.lead(member);
            let presence = match member.presence {
                None => VALUE,
                Some(presence) => self.pick(presence, &[None, Some(inner), None], depth),
            };
            let step = format!("/{}", member.name);
            let here = format!("{pointer}{step}");
            match presence {
                ABSENT => {
                    into.unstated.insert(here, unstated(self.graph, member));
                }
                NULL => {
                    into.unstated.insert(here, unstated(self.graph, member));
                    map.insert(member.name.clone(), Value::Null);
                }
                _ => {
                    let value = self.below(inner, &step, pointer, depth, into);
                    if value.is_null() && member.presence.is_some() {
                        into.unstated.insert(here, unstated(self.graph, member));
                    }
                    map.insert(member.name.clone(), value);
                }
            }
        }
        if let Some(rest) = object.rest
            && self.option(choice, &[None, Some(rest)], depth) == 1
        {
            let key = self.key(0);
            let value = self.below(rest, &format!("/{key}"), pointer, depth, into);
            map.insert(key, value);
        }
        Value::Object(map)
    }

    fn anything(&mut self, choice: Option<ChoiceId>, depth: usize) -> Value {
        match ANYTHING[self.option(choice, &[None; 6], depth)] {
            "null" => Value::Null,
            "boolean" => Value::Bool(self.rng.below(2) == 1),
            "number" => json!(*self.rng.pick(&[0.5, -7.0, 1e300])),
            "string" => Value::String(self.text(0)),
            // Nulls in here are content: the copy must keep them.
            "array" => json!([1, null, "x", [], { "k": null }]),
            _ => {
                json!({ "inner": { "list": [true, null], "none": null }, "n": 18_446_744_073_709_551_615_u64 })
            }
        }
    }

    fn integer(&mut self, range: Range) -> Value {
        let Range { least, most } = range;
        let near = least.max(0);
        let pick = [
            least,
            most,
            near,
            (near + 1).min(most),
            (near + 1_000_003).min(most),
        ];
        let number = *self.rng.pick(&pick);
        let unsigned = u64::try_from(number).map(Number::from);
        Value::Number(unsigned.unwrap_or_else(|_| Number::from(number as i64)))
    }

    fn text(&mut self, least: usize) -> String {
        let long_enough = |text: &&&str| text.chars().count() >= least;
        let texts: Vec<&str> = TEXTS.iter().filter(long_enough).copied().collect();
        if texts.is_empty() {
            return "x".repeat(least);
        }
        (*self.rng.pick(&texts)).to_owned()
    }

    fn key(&mut self, index: usize) -> String {
        format!("{}{index}", self.rng.pick(&["key", "a.b", "ключ"]))
    }
}

fn uuid(rng: &mut Rng) -> String {
    let high = rng.bits();
    let low = rng.bits();
    format!(
        "{:08x}-{:04x}-7{:03x}-8{:03x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        (low >> 48) & 0xfff,
        low & 0xffff_ffff_ffff
    )
}

fn unstated(graph: &Graph, member: &Member) -> AbsentValue {
    match &member.default {
        Some(default) if !default.is_null() => AbsentValue::Default(default.clone()),
        _ if may_be_null(graph, member.node) => AbsentValue::Null,
        _ => AbsentValue::Nothing,
    }
}

/// Returns whether null is among the values of a node.
pub fn may_be_null(graph: &Graph, node: NodeId) -> bool {
    matches!(
        graph.nodes[node].shape,
        Shape::Nullable(_) | Shape::Any | Shape::Null
    )
}

/// Returns the depth of the shallowest instance of each node, used to finish instances that grow
/// too large.
pub fn heights(graph: &Graph) -> Vec<usize> {
    const ENDLESS: usize = usize::MAX / 2;
    let mut heights = vec![ENDLESS; graph.nodes.len()];
    loop {
        let mut changed = false;
        for (id, node) in graph.nodes.iter().enumerate() {
            let height = match &node.shape {
                Shape::Object(object) => {
                    let required = object
                        .members
                        .iter()
                        .filter(|member| member.presence.is_none());
                    required
                        .map(|member| heights[member.node] + 1)
                        .max()
                        .unwrap_or(0)
                }
                Shape::Union(arms) => arms.iter().map(|arm| heights[*arm] + 1).min().unwrap_or(0),
                Shape::Open(inner) => heights[*inner] + 1,
                _ => 0,
            };
            if height < heights[id] {
                heights[id] = height;
                changed = true;
            }
        }
        if !changed {
            return heights;
        }
    }
}
