//! What the rest of abide asks of the operating system, made safe to ask: nothing here waits for ever, and nothing here
//! knows what an instance is.

pub mod atomic;
pub mod clock;
pub mod crash;
pub mod daemon;
pub mod host;
pub mod passwd;
pub mod pieces;
pub mod poll;
pub mod process;
pub mod run;
pub mod signals;
pub mod terminal;
pub mod untrusted;
