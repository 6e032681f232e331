//! Exit codes; scripts rely on them.

use std::process::ExitCode;

/// A documented exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code(pub u8);

/// Done; a taken default too.
pub const DONE: Code = Code(0);
/// Refused or failed.
pub const FAILED: Code = Code(1);
/// Wrong usage (clap's own code too).
pub const USAGE: Code = Code(2);
/// `chips ask`: timed out with nothing taken.
pub const TIMED_OUT: Code = Code(3);
/// `chips ask`: withdrawn.
pub const WITHDRAWN: Code = Code(4);
/// `chips serve`: the store failed, the outcome of the last writes is unknown.
pub const STORE_FAILED: Code = Code(70);
/// The terminal is gone (128 and the number of SIGHUP).
pub const HUNG_UP: Code = Code(129);
/// Interrupted; the ask stays open.
pub const INTERRUPTED: Code = Code(130);

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code.0)
    }
}
