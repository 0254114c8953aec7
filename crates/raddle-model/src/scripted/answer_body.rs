//! Bodies of responses: sent at once, or as they are played.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

/// Closes the connection in the middle of a response.
#[derive(Debug, thiserror::Error)]
#[error("the script ends the connection here")]
pub(super) struct Disconnect;

/// An answer that is being played; it completes or disconnects.
pub(super) trait Playable: Future<Output = Result<(), Disconnect>> + Send {}

impl<T: Future<Output = Result<(), Disconnect>> + Send> Playable for T {}

/// Body of a response: sent at once, or as it is played.
pub(super) enum AnswerBody {
    Whole(Full<Bytes>),
    Played {
        play: Option<Pin<Box<dyn Playable>>>,
        frames: mpsc::Receiver<Bytes>,
        ending: BodyEnd,
    },
}

/// End of a played body.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum BodyEnd {
    Complete,
    Disconnect,
    /// Disconnects as soon as the data before has been sent.
    AfterQueued,
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Disconnect;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Disconnect>>> {
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
                    && let Poll::Ready(result) = playing.as_mut().poll(context)
                {
                    if result.is_err() {
                        *ending = BodyEnd::AfterQueued;
                    }
                    *play = None;
                }
                match (frames.poll_recv(context), *ending) {
                    (Poll::Ready(Some(bytes)), _) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                    (Poll::Ready(None), BodyEnd::Complete) => Poll::Ready(None),
                    (Poll::Ready(None), BodyEnd::Disconnect) => Poll::Ready(Some(Err(Disconnect))),
                    (Poll::Ready(None), BodyEnd::AfterQueued) => {
                        *ending = BodyEnd::Disconnect;
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
