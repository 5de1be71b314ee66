//! Records of incidents as people meet them: files in, records or mistakes out.

mod library;
mod mistakes;
