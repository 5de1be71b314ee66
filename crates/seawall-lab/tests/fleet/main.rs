//! The fleet over loopback sockets, with a raw client.

mod shapes;
mod support;
