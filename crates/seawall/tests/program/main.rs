//! The program as people run it: whole processes over loopback.

mod arguments;
mod demo;
mod drain;
mod process;
