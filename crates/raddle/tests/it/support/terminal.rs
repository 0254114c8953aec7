//! A real terminal with a simulated user.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::eventually;

/// A terminal, and the text shown on it.
pub struct TestTerminal {
    /// The user's side, to type at.
    pub user_side: File,
    name: String,
    shown: Arc<Mutex<String>>,
}

impl TestTerminal {
    pub fn open() -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&ours).expect("ours");
        unlockpt(&ours).expect("unlocked");
        let name = ptsname(&ours, Vec::new()).expect("a name");
        let user_side = File::from(ours);
        let mut reader = user_side.try_clone().expect("another");
        let shown = Arc::new(Mutex::new(String::new()));
        let reader_text = shown.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
                reader_text.lock().expect("no panic").push_str(&text);
            }
        });
        Self {
            user_side,
            name: name.into_string().expect("a name"),
            shown,
        }
    }

    /// The side of the program.
    pub fn program_side(&self) -> OwnedFd {
        rustix::fs::open(&self.name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("opened")
    }

    pub fn shown(&self) -> String {
        self.shown.lock().expect("no panic").clone()
    }

    pub fn wait_for(&self, text: &str) {
        eventually(text, || self.shown().contains(text).then_some(()));
    }
}
