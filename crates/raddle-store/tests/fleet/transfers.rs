//! Moves between a home and PostgreSQL.

use crate::maker::FleetMaker;
use crate::makers::LocalMaker;

transfer_tests!(mod local_to_fleet, LocalMaker => FleetMaker);
transfer_tests!(mod fleet_to_local, FleetMaker => LocalMaker);
