//! Reads the headers of incoming frames before anything is buffered, and lets few frames through at a time.
//!
//! Wraps the request payload of one socket and lives in its session's actor. The parser of actix checks a frame's size
//! only when the whole frame has arrived (measured: a declared gigabyte is buffered), and its stream takes in whatever
//! is there while the actor handles 16 frames a turn, so that a flood of tiny frames would pile up.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::error::PayloadError;
use bytes::Bytes;
use futures_util::Stream;

use crate::protocol::close::CloseReason;

/// Whole frames that have passed and are not yet handled above which no further bytes pass.
const MAX_UNHANDLED_FRAMES: usize = 16;
const MASK_BYTES: u64 = 4;
const MAX_CONTROL_BYTES: u64 = 125;

/// What the guard and the session's actor tell each other.
#[derive(Default)]
pub(super) struct Gate {
    unhandled: Cell<usize>,
    refused: Cell<Option<CloseReason>>,
}

impl Gate {
    /// The actor has handled a frame.
    pub fn frame_handled(&self) {
        self.unhandled.set(self.unhandled.get().saturating_sub(1));
    }

    /// Why the guard ended the stream; `None`: the connection did.
    pub fn refused(&self) -> Option<CloseReason> {
        self.refused.get()
    }
}

/// The payload under guard. It ends instead of failing, so that the frames before the end are still handled.
pub(super) struct GuardedPayload<S> {
    payload: S,
    scanner: HeaderScanner,
    chunk: Bytes,
    gate: Rc<Gate>,
    ended: bool,
}

impl<S> GuardedPayload<S> {
    pub fn new(payload: S, max_frame_bytes: usize, gate: Rc<Gate>) -> Self {
        let scanner = HeaderScanner::new(max_frame_bytes as u64);
        GuardedPayload { payload, scanner, chunk: Bytes::new(), gate, ended: false }
    }
}

impl<S: Stream<Item = Result<Bytes, PayloadError>> + Unpin> Stream for GuardedPayload<S> {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if this.ended {
                return Poll::Ready(None);
            }
            let room = MAX_UNHANDLED_FRAMES.saturating_sub(this.gate.unhandled.get());
            if room == 0 {
                // No wake-up is lost: the reader holds whole frames, and asks again after each of them.
                return Poll::Pending;
            }
            if this.chunk.is_empty() {
                match Pin::new(&mut this.payload).poll_next(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Some(Ok(chunk))) => this.chunk = chunk,
                    Poll::Ready(Some(Err(_)) | None) => this.ended = true,
                }
                continue;
            }
            let scan = this.scanner.scan(&this.chunk, room);
            this.gate.unhandled.set(this.gate.unhandled.get() + scan.frames);
            if scan.refused.is_some() {
                this.gate.refused.set(scan.refused);
                this.ended = true;
            }
            let passed = this.chunk.split_to(scan.bytes);
            if !passed.is_empty() {
                return Poll::Ready(Some(Ok(passed)));
            }
        }
    }
}

/// How far a chunk may pass.
#[derive(Debug, PartialEq, Eq)]
struct Scan {
    bytes: usize,
    /// Frames whose last byte is among them.
    frames: usize,
    /// The byte after them may not pass.
    refused: Option<CloseReason>,
}

/// Follows frame boundaries through chunks of any size.
struct HeaderScanner {
    limit: u64,
    expects: Expects,
    control: bool,
    /// Inside a fragmented message, with this many bytes of it so far.
    message: Option<u64>,
    last_fragment: bool,
}

enum Expects {
    FirstByte,
    Length,
    /// This many more bytes of an extended length, and its value so far.
    ExtendedLength(u8, u64),
    /// Mask and payload bytes that are still to come.
    Body(u64),
}

impl HeaderScanner {
    fn new(limit: u64) -> HeaderScanner {
        HeaderScanner { limit, expects: Expects::FirstByte, control: false, message: None, last_fragment: false }
    }

    fn scan(&mut self, chunk: &[u8], max_frames: usize) -> Scan {
        let mut rest = chunk;
        let mut frames = 0;
        let mut refused = None;
        while frames < max_frames {
            if let Expects::Body(left) = self.expects {
                let passing = left.min(rest.len() as u64);
                rest = rest.get(passing as usize..).unwrap_or_default();
                self.expects = Expects::Body(left - passing);
                if left > passing {
                    break;
                }
                self.expects = Expects::FirstByte;
                frames += 1;
                continue;
            }
            let Some((byte, after)) = rest.split_first() else { break };
            if let Err(reason) = self.header_byte(*byte) {
                refused = Some(reason);
                break;
            }
            rest = after;
        }
        Scan { bytes: chunk.len() - rest.len(), frames, refused }
    }

    fn header_byte(&mut self, byte: u8) -> Result<(), CloseReason> {
        match self.expects {
            Expects::FirstByte => self.first_byte(byte),
            Expects::Length if byte & 0x80 == 0 => Err(CloseReason::ProtocolError),
            Expects::Length => match byte & 0x7f {
                126 if !self.control => self.expect(Expects::ExtendedLength(2, 0)),
                127 if !self.control => self.expect(Expects::ExtendedLength(8, 0)),
                length => self.length(u64::from(length)),
            },
            Expects::ExtendedLength(left, value) => {
                // The top bit of a 64-bit length is reserved; a length with it is too large in any case.
                let value = (value << 8) | u64::from(byte);
                if left > 1 { self.expect(Expects::ExtendedLength(left - 1, value)) } else { self.length(value) }
            }
            Expects::Body(_) => Ok(()),
        }
    }

    fn first_byte(&mut self, byte: u8) -> Result<(), CloseReason> {
        let is_final = byte & 0x80 != 0;
        self.control = byte & 0x08 != 0;
        let allowed = byte & 0x70 == 0
            && match byte & 0x0f {
                0x0 => self.message.is_some(),
                0x1 | 0x2 => self.message.is_none(),
                0x8..=0xa => is_final,
                _ => false,
            };
        if !allowed {
            return Err(CloseReason::ProtocolError);
        }
        if !self.control {
            self.last_fragment = is_final;
        }
        self.expect(Expects::Length)
    }

    fn length(&mut self, length: u64) -> Result<(), CloseReason> {
        if self.control {
            if length > MAX_CONTROL_BYTES {
                return Err(CloseReason::ProtocolError);
            }
        } else {
            let total = self.message.unwrap_or(0).saturating_add(length);
            if total > self.limit {
                return Err(CloseReason::TooLarge);
            }
            self.message = (!self.last_fragment).then_some(total);
        }
        self.expect(Expects::Body(MASK_BYTES + length))
    }

    fn expect(&mut self, next: Expects) -> Result<(), CloseReason> {
        self.expects = next;
        Ok(())
    }
}
#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use futures_util::stream;
    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 70_000;

    fn header(opcode: u8, is_final: bool, declared: u64) -> Vec<u8> {
        let mut bytes = vec![opcode | if is_final { 0x80 } else { 0 }];
        match declared {
            0..=125 => bytes.push(0x80 | declared as u8),
            126..=0xffff => {
                bytes.push(0x80 | 126);
                bytes.extend((declared as u16).to_be_bytes());
            }
            _ => {
                bytes.push(0x80 | 127);
                bytes.extend(declared.to_be_bytes());
            }
        }
        bytes
    }

    fn frame(opcode: u8, is_final: bool, length: usize) -> Vec<u8> {
        let mut bytes = header(opcode, is_final, length as u64);
        bytes.extend(vec![0x55; 4 + length]);
        bytes
    }

    /// Feeds `bytes` in pieces of the given sizes, over and over; answers what passed, whole frames, and the refusal.
    fn scan_in_pieces(bytes: &[u8], sizes: &[usize], max_frames: usize) -> (usize, usize, Option<CloseReason>) {
        let mut scanner = HeaderScanner::new(LIMIT as u64);
        let (mut passed, mut frames) = (0, 0);
        for size in sizes.iter().cycle() {
            let piece = &bytes[passed..(passed + size).min(bytes.len())];
            if piece.is_empty() {
                break;
            }
            let scan = scanner.scan(piece, max_frames);
            assert!(scan.frames <= max_frames);
            passed += scan.bytes;
            frames += scan.frames;
            if scan.refused.is_some() {
                return (passed, frames, scan.refused);
            }
        }
        (passed, frames, None)
    }

    fn message() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let length = prop_oneof![0..130usize, 65_000..LIMIT];
        let control = (prop_oneof![Just(8u8), Just(9), Just(10)], 0..126usize);
        prop_oneof![
            (1..3u8, length).prop_map(|(opcode, length)| vec![frame(opcode, true, length)]),
            control.clone().prop_map(|(opcode, length)| vec![frame(opcode, true, length)]),
            (1..3u8, 0..200usize, 0..200usize, control).prop_map(|(opcode, first, last, (control, length))| vec![
                frame(opcode, false, first),
                frame(control, true, length),
                frame(0, false, 1),
                frame(0, true, last),
            ]),
        ]
    }

    /// What may not pass, with how many bytes of it may, and why.
    fn offence() -> impl Strategy<Value = (Vec<u8>, usize, CloseReason)> {
        let reserved = (1..8u8).prop_map(|bits| (vec![0x81 | (bits << 4), 0x80], 0, CloseReason::ProtocolError));
        let opcode = prop_oneof![3..8u8, 11..16u8, Just(0)]
            .prop_map(|opcode| (vec![0x80 | opcode, 0x80], 0, CloseReason::ProtocolError));
        let unmasked = (0..128u8).prop_map(|length| (vec![0x81, length], 1, CloseReason::ProtocolError));
        let long_control = (126..128u8, 8..11u8)
            .prop_map(|(length, opcode)| (vec![0x80 | opcode, 0x80 | length], 1, CloseReason::ProtocolError));
        let fragmented_control = (8..11u8).prop_map(|opcode| (vec![opcode, 0x80], 0, CloseReason::ProtocolError));
        let too_large = (LIMIT as u64 + 1..).prop_map(|length| (header(1, true, length), 9, CloseReason::TooLarge));
        let too_large_in_sum = (1..LIMIT).prop_map(|first| {
            let mut bytes = frame(1, false, first);
            let rest = header(0, true, (LIMIT - first + 1) as u64);
            bytes.extend(&rest);
            let passed = bytes.len() - 1;
            (bytes, passed, CloseReason::TooLarge)
        });
        let nested = (1..3u8).prop_map(|opcode| {
            let mut bytes = frame(1, false, 3);
            let passed = bytes.len();
            bytes.extend(frame(opcode, true, 3));
            (bytes, passed, CloseReason::ProtocolError)
        });
        prop_oneof![reserved, opcode, unmasked, long_control, fragmented_control, too_large, too_large_in_sum, nested]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn proper_frames_pass_and_are_counted_whatever_the_chunks(
            messages in prop::collection::vec(message(), 1..8),
            sizes in prop::collection::vec(1..5_000usize, 1..20),
            max_frames in 1..20usize,
        ) {
            let frames = messages.concat();
            let bytes = frames.concat();
            prop_assert_eq!(scan_in_pieces(&bytes, &sizes, max_frames), (bytes.len(), frames.len(), None));
        }

        #[test]
        fn an_offence_is_refused_at_its_byte_whatever_the_chunks(
            messages in prop::collection::vec(message(), 0..4),
            (offence, passing, reason) in offence(),
            sizes in prop::collection::vec(1..5_000usize, 1..20),
        ) {
            let before = messages.concat().concat();
            let bytes = [before.clone(), offence, vec![0; 100]].concat();
            let (passed, _, refused) = scan_in_pieces(&bytes, &sizes, 16);
            prop_assert_eq!((passed, refused), (before.len() + passing, Some(reason)));
        }
    }

    #[test]
    fn any_bytes_are_survived() {
        proptest!(|(bytes: Vec<u8>, sizes in prop::collection::vec(1..50usize, 1..9))| {
            scan_in_pieces(&bytes, &sizes, 3);
        });
    }

    #[actix_web::test]
    async fn a_flood_of_frames_waits_until_frames_are_handled() {
        let flood: Vec<u8> = frame(9, true, 0).repeat(1_000);
        let gate = Rc::new(Gate::default());
        let source = stream::iter([Ok(Bytes::from(flood))]);
        let mut guarded = GuardedPayload::new(source, LIMIT, gate.clone());
        let first = guarded.next().await.unwrap().unwrap();
        assert_eq!(first.len(), MAX_UNHANDLED_FRAMES * 6);
        assert!(futures_util::poll!(guarded.next()).is_pending());
        gate.frame_handled();
        assert_eq!(guarded.next().await.unwrap().unwrap().len(), 6);
    }
}
