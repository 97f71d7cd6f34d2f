//! Tests of what several modules of the mux make together.

mod echo;
