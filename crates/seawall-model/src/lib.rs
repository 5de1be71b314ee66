//! PLACEHOLDER
#![no_std]

extern crate alloc;
