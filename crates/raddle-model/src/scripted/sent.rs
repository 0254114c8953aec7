//! What is sent back: all at once, or as it is played.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

/// The connection is to be closed in the middle.
#[derive(Debug, thiserror::Error)]
#[error("the script ends the connection here")]
pub(super) struct Cut;

/// An answer on its way, which ends well or is cut.
pub(super) trait Playable: Future<Output = Result<(), Cut>> + Send {}

impl<T: Future<Output = Result<(), Cut>> + Send> Playable for T {}

/// What is sent back: all at once, or as it is played.
pub(super) enum Sent {
    Whole(Full<Bytes>),
    Played {
        play: Option<Pin<Box<dyn Playable>>>,
        frames: mpsc::Receiver<Bytes>,
        ending: Ending,
    },
}

/// How what is played ends.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Ending {
    Well,
    Cut,
    /// Cut as soon as what was said before has gone out.
    Soon,
}

impl Body for Sent {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match self.get_mut() {
            Self::Whole(body) => {
                let frame = Pin::new(body).poll_frame(context);
                frame.map(|it| it.map(|frame| frame.map_err(|never| match never {})))
            }
            Self::Played {
                play,
                frames,
                ending,
            } => {
                if let Some(playing) = play
                    && let Poll::Ready(played) = playing.as_mut().poll(context)
                {
                    if played.is_err() {
                        *ending = Ending::Soon;
                    }
                    *play = None;
                }
                match (frames.poll_recv(context), *ending) {
                    (Poll::Ready(Some(bytes)), _) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                    (Poll::Ready(None), Ending::Well) => Poll::Ready(None),
                    (Poll::Ready(None), Ending::Cut) => Poll::Ready(Some(Err(Cut))),
                    (Poll::Ready(None), Ending::Soon) => {
                        *ending = Ending::Cut;
                        context.waker().wake_by_ref();
                        Poll::Pending
                    }
                    (Poll::Pending, _) => Poll::Pending,
                }
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Played { .. } => SizeHint::default(),
        }
    }
}
