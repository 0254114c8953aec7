//! What is shown of a place.

use raddle_client::{Program, ServerAddress};

#[test]
fn no_place_shows_its_secrets() {
    let mut program = Program::new("raddle", ["app-server"]);
    program.env = vec![("A_KEY".into(), "sesame".into())];
    let web_socket = ServerAddress::WebSocket {
        url: "ws://127.0.0.1:4500".to_owned(),
        token: Some("sesame".to_owned()),
    };
    for (place, shows) in [
        (ServerAddress::Child(program), "A_KEY"),
        (web_socket, "4500"),
    ] {
        let shown = format!("{place:?}");
        assert!(shown.contains(shows), "{shown}");
        assert!(!shown.contains("sesame"), "{shown}");
    }
}
