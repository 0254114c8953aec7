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
pub(super) struct Disconnect;

/// An answer on its way, which ends well or is cut.
pub(super) trait Playable: Future<Output = Result<(), Disconnect>> + Send {}

impl<T: Future<Output = Result<(), Disconnect>> + Send> Playable for T {}

/// What is sent back: all at once, or as it is played.
pub(super) enum AnswerBody {
    Whole(Full<Bytes>),
    Played {
        play: Option<Pin<Box<dyn Playable>>>,
        frames: mpsc::Receiver<Bytes>,
        ending: BodyEnd,
    },
}

/// How what is played ends.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum BodyEnd {
    Well,
    Disconnect,
    /// Cut as soon as what was said before has gone out.
    Soon,
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
                    && let Poll::Ready(played) = playing.as_mut().poll(context)
                {
                    if played.is_err() {
                        *ending = BodyEnd::Soon;
                    }
                    *play = None;
                }
                match (frames.poll_recv(context), *ending) {
                    (Poll::Ready(Some(bytes)), _) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                    (Poll::Ready(None), BodyEnd::Well) => Poll::Ready(None),
                    (Poll::Ready(None), BodyEnd::Disconnect) => Poll::Ready(Some(Err(Disconnect))),
                    (Poll::Ready(None), BodyEnd::Soon) => {
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
