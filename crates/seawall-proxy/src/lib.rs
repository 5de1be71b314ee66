//! The data plane: sockets, bodies, streams and timers around the engine.
//!
//! [`handler::handle`] is the life of a request from top to bottom; [`run::start`] makes a serving process.

pub mod access_log;
pub mod admin;
pub mod admin_token;
pub mod app;
pub mod body;
pub mod bytes_budget;
pub mod clock;
pub mod driver;
pub mod early;
pub mod flight;
pub mod gate;
pub mod handler;
pub mod intake;
pub mod memory;
pub mod metrics;
pub mod notices;
pub mod outgoing;
pub mod record;
pub mod relay;
pub mod respond;
pub mod run;
pub mod server;
pub mod status;
pub mod upstream;
