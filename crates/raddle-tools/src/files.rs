//! Files of a workspace: reading, listing, searching, writing, never outside the folders they are given.
