//! `initialize`

#[tokio::test]
async fn conversation() {
    crate::client::play("initialize").await;
}

#[tokio::test]
async fn clients_introduce_themselves_each_on_its_own() {
    use raddle_rpc::{Limits, memory};

    let stage = crate::player::Stage::new();
    let mut server = stage.open();
    let _first = crate::client::Client::connect(&mut server).await;
    let (mut second, far) = memory(Limits::default());
    server.serve(far);
    second
        .outgoing
        .send(r#"{"id":1,"method":"account/read","params":{}}"#.into());
    let Some(raddle_rpc::Frame::Message(answer)) = second.incoming.next().await else {
        panic!("an answer");
    };
    assert_eq!(
        &answer[..],
        br#"{"id":1,"error":{"code":-32600,"message":"Not initialized"}}"#
    );
}
