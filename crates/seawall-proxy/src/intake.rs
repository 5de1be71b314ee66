//! Reading a request's body: within the limit on one body, the budget of all bodies, and the time for an upload.

use crate::app::App;
use crate::bytes_budget::Reservation;
use crate::early::Early;
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, EXPECT};
use http::request::Parts;
use http::{HeaderMap, StatusCode, Version};
use http_body::Body;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use seawall_core::outcome::Outcome;
use std::time::Duration;

/// A body without a stated length reserves in steps of this size.
const RESERVE_STEP: u64 = 64 * 1024;
/// How much of a refused body is read and dropped, and for how long.
const DISCARD_BYTES: usize = 256 * 1024 * 1024;
const DISCARD_TIME: Duration = Duration::from_secs(5);

/// Reads the body. A stated length over the limit is refused before anything is read (so that a client which sent
/// `Expect: 100-continue` sends nothing).
pub async fn read_body(app: &App, headers: &HeaderMap, body: &mut Incoming) -> Result<(Bytes, Reservation), Early> {
    let limit = app.config.server().max_body_bytes;
    let stated = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if stated.is_some_and(|length| length > limit) {
        return Err(too_large(limit));
    }
    let mut reservation = app.bytes.reserve(stated.unwrap_or(RESERVE_STEP)).ok_or_else(memory_full)?;
    let time = app.config.server().body_timeout;
    match tokio::time::timeout(time, collect(body, stated, limit, &mut reservation)).await {
        Ok(collected) => Ok((collected?, reservation)),
        Err(_) => Err(slow(time)),
    }
}

async fn collect(
    body: &mut Incoming,
    stated: Option<u64>,
    limit: u64,
    reservation: &mut Reservation,
) -> Result<Bytes, Early> {
    // A body that comes in one piece, as most do, is never copied.
    let mut only: Option<Bytes> = None;
    let mut whole = BytesMut::new();
    let mut length = 0;
    // Asked for nothing after its last byte: the answer would be another turn of the connection's task.
    while !body.is_end_stream()
        && let Some(frame) = body.frame().await
    {
        let broken = |_| Early::new(Outcome::ClientGone, "The body broke off.");
        let Ok(piece) = frame.map_err(broken)?.into_data() else { continue };
        length += piece.len() as u64;
        if length > limit {
            return Err(too_large(limit));
        }
        if stated.is_none() && !reservation.grow_to(length.next_multiple_of(RESERVE_STEP)) {
            return Err(memory_full());
        }
        if length == piece.len() as u64 {
            only = Some(piece);
            continue;
        }
        if let Some(first) = only.take() {
            whole.reserve(stated.and_then(|length| usize::try_from(length).ok()).unwrap_or(first.len() + piece.len()));
            whole.extend_from_slice(&first);
        }
        whole.extend_from_slice(&piece);
    }
    Ok(only.unwrap_or_else(|| whole.freeze()))
}

/// Whether the body of a refused request is worth reading: it comes, and on a connection of its own. Who asked to be
/// told first has sent nothing yet, and asking for it would tell it to.
pub fn comes_anyway(head: &Parts) -> bool {
    head.version != Version::HTTP_2 && !head.headers.contains_key(EXPECT)
}

/// Reads and drops the rest of a refused request's body, within bounds. A client that sends all of it before it reads
/// would otherwise find its connection reset, and the refusal lost: to it that is a fault to retry at once.
pub fn discard(mut body: Incoming) {
    if body.is_end_stream() {
        return;
    }
    let read = async move {
        let mut left = DISCARD_BYTES;
        while left > 0
            && let Some(Ok(frame)) = body.frame().await
        {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
        }
    };
    tokio::spawn(tokio::time::timeout(DISCARD_TIME, read));
}

fn too_large(limit: u64) -> Early {
    let message = format!("The request body is larger than the limit of {limit} bytes (setting `max_body`).");
    Early::new(Outcome::TooLarge, message).status(StatusCode::PAYLOAD_TOO_LARGE)
}

fn memory_full() -> Early {
    Early::new(Outcome::MemoryFull, "The service holds as many request bytes as it may.")
}

fn slow(time: Duration) -> Early {
    Early::new(Outcome::SlowUpload, format!("The request body did not arrive within {} s.", time.as_secs()))
}
