//! The fleet over loopback sockets, with a raw client.

mod behaviour;
mod faults;
mod shapes;
mod support;
