//! Live frames that wait behind a replay: they must not overtake it, and those that it holds must not come twice. Exists
//! only while a replay runs; its bytes count like those of the queue.

use std::collections::VecDeque;

use crate::domain::device_position::DevicePosition;
use crate::domain::ids::MessageId;
use crate::protocol::frame::{Frame, FrameClass, Stream};
use crate::service::replay::ReplayCursor;

#[derive(Default)]
pub(super) struct Hold {
    /// In order of arrival.
    frames: VecDeque<Frame>,
    private_is_done: bool,
    group_is_done: bool,
}

impl Hold {
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Takes a frame that has to wait. Frames that are not stored, or not replayed, wait for nothing.
    pub fn keep(&mut self, frame: &Frame) -> bool {
        let must_wait = match frame.class {
            FrameClass::Stored { stream: Stream::Private, .. } => !self.private_is_done,
            FrameClass::Stored { stream: Stream::Group, .. } => !self.group_is_done,
            FrameClass::Stored { stream: Stream::Channel, .. } | FrameClass::State | FrameClass::Signal => false,
        };
        if must_wait {
            self.frames.push_back(frame.clone());
        }
        must_wait
    }

    /// Gives up the frames that the replay holds.
    pub fn drop_up_to(&mut self, mut replayed: DevicePosition) -> Vec<Frame> {
        self.take_where(|stream, id| id <= *stream.of(&mut replayed))
    }

    /// Gives up the frames of streams whose replay is done; later ones of them do not wait any more.
    pub fn release(&mut self, cursor: ReplayCursor) -> Vec<Frame> {
        self.private_is_done = cursor.private_is_done;
        self.group_is_done = cursor.group_is_done;
        self.take_where(|stream, _| match stream {
            Stream::Private => cursor.private_is_done,
            Stream::Group => cursor.group_is_done,
            Stream::Channel => true,
        })
    }

    fn take_where(&mut self, mut is_taken: impl FnMut(Stream, MessageId) -> bool) -> Vec<Frame> {
        let (mut taken, mut kept) = (Vec::new(), VecDeque::new());
        for frame in self.frames.drain(..) {
            match frame.class {
                FrameClass::Stored { stream, id } if !is_taken(stream, MessageId(id)) => kept.push_back(frame),
                _ => taken.push(frame),
            }
        }
        self.frames = kept;
        taken
    }
}
