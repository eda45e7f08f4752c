use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection::Connection;
use super::socket::Duplex;

/// AuthenticationOk, and ReadyForQuery outside of a transaction.
const GREETING: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

/// A session that is logged in, for tokio-postgres, which wants to log in by itself: its startup
/// message is dropped and answered from here. So there is one login for both kinds of session,
/// and a password never goes where ours would not send it.
pub(super) struct LoggedIn {
    io: Box<dyn Duplex>,
    unread: Bytes,
    startup_dropped: bool,
}

impl LoggedIn {
    pub(super) fn new(connection: Connection) -> Self {
        let (io, inbound) = connection.into_parts();
        let mut unread = BytesMut::from(GREETING);
        unread.extend_from_slice(&inbound.into_unread());
        Self {
            io,
            unread: unread.freeze(),
            startup_dropped: false,
        }
    }
}

impl AsyncRead for LoggedIn {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.unread.is_empty() {
            return Pin::new(&mut self.io).poll_read(context, into);
        }
        let length = self.unread.len().min(into.remaining());
        into.put_slice(&self.unread.copy_to_bytes(length));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for LoggedIn {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.startup_dropped {
            return Pin::new(&mut self.io).poll_write(context, bytes);
        }
        // Nothing can follow it before it is answered, so this is all of it.
        self.startup_dropped = true;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
