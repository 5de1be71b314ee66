//! PLACEHOLDER

fn main() {}
