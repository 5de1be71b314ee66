//! One module a command.

pub(crate) mod check;
pub(crate) mod drill;
pub(crate) mod fleet;
pub(crate) mod init;
pub(crate) mod load;
pub(crate) mod replay;
pub(crate) mod serve;
mod signals;
pub(crate) mod sim;
pub(crate) mod storm;
