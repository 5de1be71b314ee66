//! The end of a process: what runs is finished, what is new goes elsewhere.

use crate::process::{Answer, Serve, connect, get, parse, request};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

const STREAMS: usize = 100;

/// A stream that has begun: its first event is here.
fn begin_stream(address: SocketAddr, number: usize) -> (TcpStream, Vec<u8>) {
    let body = format!(
        r#"{{"model":"demo-chat","stream":true,"user":"{number}","messages":[{{"role":"user","content":"{number}"}}]}}"#
    );
    let mut stream = connect(address);
    let request = request(address, "/v1/chat/completions", "Authorization: Bearer demo-key\r\n", &body);
    stream.write_all(request.as_bytes()).expect("the request is sent");
    let mut raw = Vec::new();
    while !raw.windows(6).any(|window| window == b"data: ") {
        let mut piece = [0; 4_096];
        let read = stream.read(&mut piece).expect("the stream begins");
        assert!(read > 0, "{}", String::from_utf8_lossy(&raw));
        raw.extend_from_slice(&piece[..read]);
    }
    (stream, raw)
}

fn rest((mut stream, mut raw): (TcpStream, Vec<u8>)) -> Answer {
    stream.read_to_end(&mut raw).expect("the stream ends");
    parse(&raw)
}

#[test]
fn sigterm_lets_a_hundred_streams_finish() {
    let demo = Serve::demo();
    // The first event goes out at once; the rest waits until the servers have capacity again.
    demo.fault(r#"{"server":"*","capacity_percent":0}"#);
    let streams: Vec<_> = (0..STREAMS).map(|number| begin_stream(demo.listen, number)).collect();

    demo.signal("TERM");
    demo.wait_for("draining");
    assert_eq!(get(demo.admin, "/livez").status, 200, "liveness stays");
    assert_eq!(get(demo.admin, "/readyz").status, 503, "readiness goes at once");
    // The listener closes at once; a connection that the system had accepted already is told to go elsewhere.
    let refused = TcpStream::connect(demo.listen).is_err() || demo.chat("demo-key", "{}").status == 503;
    assert!(refused, "a new connection was served");

    demo.fault(r#"{"server":"*","clear":true}"#);
    for stream in streams {
        let answer = rest(stream);
        assert_eq!(answer.status, 200);
        assert!(answer.body.ends_with("data: [DONE]\n\n"), "{}", answer.body);
    }
    assert_eq!(demo.end().code(), Some(0));
}

#[test]
fn a_second_signal_leaves_at_once() {
    let demo = Serve::demo();
    demo.fault(r#"{"server":"*","capacity_percent":0}"#);
    let stream = begin_stream(demo.listen, 0);
    demo.signal("TERM");
    demo.wait_for("draining");
    demo.signal("TERM");
    assert_eq!(demo.end().code(), Some(3));
    drop(stream);
}
