//! A scripted upstream, a raw client, a running data plane, and the check of the wire contract.

pub(crate) mod client;
pub(crate) mod contract;
pub(crate) mod plane;
pub(crate) mod upstream;

use std::time::Duration;

/// Far above what any step takes; reaching it is a failure.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// Waits for `future`, but not for ever.
pub(crate) async fn in_time<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(LIMIT, future).await.unwrap_or_else(|_| panic!("not within {LIMIT:?}: {what}"))
}

/// The position after the blank line that ends a head.
pub(crate) fn head_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}

/// The value of the first header of that name in a head.
pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    headers(head).find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// The headers of a head, in order.
pub(crate) fn headers(head: &str) -> impl Iterator<Item = (&str, &str)> {
    head.lines().skip(1).filter_map(|line| line.split_once(':')).map(|(name, value)| (name.trim(), value.trim()))
}

/// What a body in chunks holds.
#[derive(Debug)]
pub(crate) struct Dechunked {
    /// The data so far.
    pub(crate) body: Vec<u8>,
    /// Bytes of the encoded form up to and with the last chunk, where that has come.
    pub(crate) complete: Option<usize>,
}

/// Decodes as much of a chunked body as there is.
pub(crate) fn dechunk(bytes: &[u8]) -> Dechunked {
    let mut body = Vec::new();
    let mut rest = bytes;
    while let Some(line) = rest.windows(2).position(|window| window == b"\r\n") {
        let digits = std::str::from_utf8(&rest[..line]).expect("a chunk's size is text");
        let size = usize::from_str_radix(digits.split(';').next().unwrap_or_default().trim(), 16).expect("a size");
        let data = &rest[line + 2..];
        if size == 0 {
            let complete = data.starts_with(b"\r\n").then(|| bytes.len() - data.len() + 2);
            return Dechunked { body, complete };
        }
        body.extend_from_slice(&data[..size.min(data.len())]);
        if data.len() < size + 2 {
            break;
        }
        rest = &data[size + 2..];
    }
    Dechunked { body, complete: None }
}

/// One chunk of a chunked body.
pub(crate) fn chunk(data: impl AsRef<[u8]>) -> Vec<u8> {
    let data = data.as_ref();
    [format!("{:x}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat()
}
