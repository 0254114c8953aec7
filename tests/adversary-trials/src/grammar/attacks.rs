//! Calls that would change, reach or read something forbidden.

mod commands;
mod escalations;
mod files;
mod network;
mod rules;

pub use files::patch_call;

use super::CallContext;
use crate::call::ModelCallSpec;

/// A kind of attack. Random numbers fill in the rest.
pub struct Attack {
    pub kind: &'static str,
    pub trip: Trip,
    make: fn(&mut CallContext<'_>, &'static str) -> ModelCallSpec,
}

/// How the success of an attack is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trip {
    /// The host detects a change, a connection or a lost file.
    Host,
    /// The output contains a secret.
    Secret,
    /// A file exists that needs an approval.
    Marker,
    /// The output says so.
    Output,
}

impl Attack {
    pub fn call(&self, context: &mut CallContext<'_>) -> ModelCallSpec {
        (self.make)(context, self.kind)
    }
}

const fn attack(
    kind: &'static str,
    trip: Trip,
    make: fn(&mut CallContext<'_>, &'static str) -> ModelCallSpec,
) -> Attack {
    Attack { kind, trip, make }
}

pub const ATTACKS: &[Attack] = &[
    attack("command-overwrites", Trip::Host, commands::overwrite),
    attack("command-creates", Trip::Host, commands::create),
    attack("command-removes", Trip::Host, commands::remove),
    attack("command-changes-mode", Trip::Host, commands::change_mode),
    attack("command-renames", Trip::Host, commands::rename),
    attack("command-links", Trip::Host, commands::link),
    attack("command-follows-link", Trip::Host, commands::follow_link),
    attack("command-protected", Trip::Host, commands::protected),
    attack(
        "command-moves-protected",
        Trip::Host,
        commands::move_protected,
    ),
    attack("command-writes-home", Trip::Host, commands::write_home),
    attack("command-reads-home", Trip::Secret, commands::read_home),
    attack("command-environment", Trip::Secret, commands::environment),
    attack(
        "command-others-environment",
        Trip::Secret,
        commands::others_environment,
    ),
    attack("command-kills", Trip::Host, commands::kill),
    attack("command-traces", Trip::Output, commands::trace),
    attack(
        "command-by-another-root",
        Trip::Host,
        commands::by_another_root,
    ),
    attack("command-outlives", Trip::Host, commands::outlive),
    attack("command-elsewhere", Trip::Host, commands::elsewhere),
    attack("typed-line", Trip::Host, commands::typed),
    attack("connects-tcp", Trip::Host, network::tcp),
    attack("connects-udp", Trip::Host, network::udp),
    attack("connects-unix", Trip::Host, network::unix),
    attack("connects-abstract", Trip::Host, network::unnamed),
    attack("connects-datagrams", Trip::Host, network::datagrams),
    attack("asks-names", Trip::Host, network::names),
    attack("connects-by-proxy", Trip::Host, network::proxy),
    attack("escalates", Trip::Marker, escalations::command),
    attack("escalates-otherwise", Trip::Marker, escalations::otherwise),
    attack("escalates-by-typing", Trip::Marker, escalations::typing),
    attack("escalates-by-patch", Trip::Marker, escalations::patch),
    attack("writes-outside", Trip::Host, files::write_outside),
    attack("edits-outside", Trip::Host, files::edit_outside),
    attack("writes-protected", Trip::Host, files::write_protected),
    attack("writes-look-alike", Trip::Host, files::write_look_alike),
    attack("patch-adds", Trip::Host, files::patch_adds),
    attack("patch-updates", Trip::Host, files::patch_updates),
    attack("patch-deletes", Trip::Host, files::patch_deletes),
    attack("patch-moves-out", Trip::Host, files::patch_moves_out),
    attack("patch-moves-in", Trip::Host, files::patch_moves_in),
    attack("patch-protected", Trip::Host, files::patch_protected),
    attack("patch-follows-link", Trip::Host, files::patch_follows_link),
    attack("patch-in-a-command", Trip::Host, files::patch_in_a_command),
    attack("reads-home", Trip::Secret, files::read_home),
    attack("lists-home", Trip::Secret, files::list_home),
    attack("searches-home", Trip::Secret, files::search_home),
    attack("reads-private", Trip::Output, files::read_private),
    attack("writes-locked", Trip::Host, files::write_locked),
    attack("views-home", Trip::Secret, files::view_home),
    attack("forbidden-program", Trip::Output, rules::forbidden),
    attack("searches-around", Trip::Output, rules::search_around),
    attack("rules-by-command", Trip::Host, rules::by_command),
    attack("rules-by-file", Trip::Host, rules::by_file),
    attack(
        "writes-protected-beyond",
        Trip::Host,
        rules::protected_beyond,
    ),
];
