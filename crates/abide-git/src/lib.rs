//! Isolated trees: materialising them, and what they hold that exists nowhere else.
