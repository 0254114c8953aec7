//! Debug output of an address.

use raddle_client::{Program, ServerAddress};

#[test]
fn debug_output_redacts_secrets() {
    let mut program = Program::new("raddle", ["app-server"]);
    program.env = vec![("A_KEY".into(), "sesame".into())];
    let web_socket = ServerAddress::WebSocket {
        url: "ws://127.0.0.1:4500".to_owned(),
        token: Some("sesame".to_owned()),
    };
    for (address, shows) in [
        (ServerAddress::Child(program), "A_KEY"),
        (web_socket, "4500"),
    ] {
        let debug_text = format!("{address:?}");
        assert!(debug_text.contains(shows), "{debug_text}");
        assert!(!debug_text.contains("sesame"), "{debug_text}");
    }
}
