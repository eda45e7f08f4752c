use std::io;

use bytes::{Buf, BytesMut};
use postgres_protocol::message::backend::{COPY_DATA_TAG, Header, Message};
use tokio::io::{AsyncRead, AsyncReadExt};

/// How much is asked of the socket at once.
const READ_BYTES: usize = 64 * 1024;
/// A buffer grown for one large row is given back once it holds little again.
const KEEP_BYTES: usize = 1024 * 1024;
/// Tag, and the length that counts itself.
const HEADER_BYTES: usize = 5;

/// Bytes received and not yet handled, cut into protocol messages.
///
/// All partial state lives here, so a read that is dropped half-way (by `select!`) loses
/// nothing.
#[derive(Debug, Default)]
pub struct Inbound {
    buffer: BytesMut,
}

impl Inbound {
    /// Reads once from the socket, waiting for it if need be. Cancel-safe.
    ///
    /// # Errors
    /// The socket's own, or `UnexpectedEof` when the server closed the connection.
    pub(super) async fn fill(
        &mut self,
        io: &mut (impl AsyncRead + Unpin + ?Sized),
    ) -> io::Result<()> {
        if self.buffer.is_empty() && self.buffer.capacity() > KEEP_BYTES {
            self.buffer = BytesMut::new();
        }
        self.buffer.reserve(self.missing_bytes()?.max(READ_BYTES));
        // Cancel-safe because read_buf only appends what it has read when it completes.
        match io.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// The body of the CopyData message at the front, borrowed, if a whole one is there.
    /// It stays until [`Self::consume_copy_data`].
    ///
    /// # Errors
    /// When the bytes are no protocol message.
    pub fn copy_data(&self) -> io::Result<Option<&[u8]>> {
        match self.front()? {
            Some((COPY_DATA_TAG, length)) => Ok(self.buffer.get(HEADER_BYTES..length)),
            _ => Ok(None),
        }
    }

    /// Drops the CopyData message at the front.
    ///
    /// # Errors
    /// When the bytes are no protocol message.
    pub fn consume_copy_data(&mut self) -> io::Result<()> {
        if let Some((COPY_DATA_TAG, length)) = self.front()? {
            self.buffer.advance(length);
        }
        Ok(())
    }

    /// Takes the message at the front, of any kind, if a whole one is there.
    ///
    /// # Errors
    /// When the bytes are no protocol message.
    pub(super) fn take(&mut self) -> io::Result<Option<Received>> {
        match self.front()? {
            None => Ok(None),
            // The one kind postgres-protocol does not know; its body only lists column formats.
            Some((b'W', length)) => {
                self.buffer.advance(length);
                Ok(Some(Received::CopyBoth))
            }
            Some(_) => Ok(Message::parse(&mut self.buffer)?.map(Received::Message)),
        }
    }

    /// Gives up what was received and not handled.
    pub(super) fn into_unread(self) -> BytesMut {
        self.buffer
    }

    /// Tag and whole length of the message at the front, if all of it is there.
    fn front(&self) -> io::Result<Option<(u8, usize)>> {
        Ok(match Header::parse(&self.buffer)? {
            Some(header) => {
                let length = whole_length(header)?;
                (self.buffer.len() >= length).then_some((header.tag(), length))
            }
            None => None,
        })
    }

    /// How many bytes the message at the front still lacks, as far as known.
    fn missing_bytes(&self) -> io::Result<usize> {
        Ok(match Header::parse(&self.buffer)? {
            Some(header) => whole_length(header)?.saturating_sub(self.buffer.len()),
            None => HEADER_BYTES,
        })
    }
}

/// What the fuzz targets (`tests/fuzz`) see of the buffer beside its CopyData messages.
#[doc(hidden)]
impl Inbound {
    /// As if these bytes had been read.
    pub fn holding(bytes: &[u8]) -> Self {
        Self {
            buffer: bytes.into(),
        }
    }

    /// Takes the message at the front, of any kind, and says whether there was a whole one.
    ///
    /// # Errors
    /// When the bytes are no protocol message.
    pub fn pass_over(&mut self) -> io::Result<bool> {
        Ok(self.take()?.is_some())
    }

    /// What has not been taken.
    pub fn unread(&self) -> &[u8] {
        &self.buffer
    }
}

/// A message taken out of the buffer.
pub(super) enum Received {
    /// CopyBothResponse: the stream begins.
    CopyBoth,
    /// Any other message.
    Message(Message),
}

/// The length on the wire leaves out the tag byte.
fn whole_length(header: Header) -> io::Result<usize> {
    usize::try_from(header.len())
        .map(|length| length + 1)
        .map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    /// Gives out its bytes in the pieces it was told, and is not ready in between.
    struct Dripping {
        pieces: Vec<Vec<u8>>,
        ready: bool,
    }

    impl AsyncRead for Dripping {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            into: &mut tokio::io::ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            self.ready = !self.ready;
            if self.ready {
                return Poll::Pending;
            }
            if !self.pieces.is_empty() {
                let piece = self.pieces.remove(0);
                into.put_slice(&piece);
            }
            Poll::Ready(Ok(()))
        }
    }

    fn copy_data(body: &[u8]) -> Vec<u8> {
        let mut message = vec![COPY_DATA_TAG];
        message.extend_from_slice(&u32::try_from(body.len() + 4).unwrap().to_be_bytes());
        message.extend_from_slice(body);
        message
    }

    proptest! {
        /// However the bytes arrive, and however often a read is dropped while it waits, the
        /// same messages come out.
        #[test]
        fn messages_survive_any_cut_and_any_dropped_read(
            bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..20),
            piece in 1_usize..97,
        ) {
            let bytes: Vec<u8> = bodies.iter().flat_map(|body| copy_data(body)).collect();
            let mut io = Dripping {
                pieces: bytes.chunks(piece).map(<[u8]>::to_vec).collect(),
                ready: false,
            };
            let mut inbound = Inbound::default();
            let mut seen = Vec::new();
            loop {
                while let Some(body) = inbound.copy_data().unwrap() {
                    seen.push(body.to_vec());
                    inbound.consume_copy_data().unwrap();
                }
                // Polls the read once and drops it, as select! does.
                let mut context = Context::from_waker(std::task::Waker::noop());
                let fill = std::pin::pin!(inbound.fill(&mut io));
                if let Poll::Ready(Err(end)) = fill.poll(&mut context) {
                    prop_assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
                    break;
                }
            }
            prop_assert_eq!(seen, bodies);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let mut inbound = Inbound { buffer: BytesMut::from(&bytes[..]) };
            let _ = inbound.copy_data();
            let _ = inbound.missing_bytes();
            while let Ok(Some(_)) = inbound.take() {}
        }
    }

    #[test]
    fn a_length_below_four_is_an_error() {
        let inbound = Inbound {
            buffer: BytesMut::from(&b"d\0\0\0\x03"[..]),
        };
        assert!(inbound.copy_data().is_err());
    }
}
