//! From bytes to functions: `parser` cuts the stream, `dispatch` is the table of what each sequence calls.

pub(crate) mod charset;
pub(crate) mod dispatch;
pub(crate) mod osc;
pub(crate) mod params;
pub(crate) mod parser;
pub(crate) mod sgr;
pub(crate) mod utf8;
