//! Where instances live, and what it takes to keep them there.

pub mod connect;
mod contained;
pub mod container_recipe;
mod devcontainer;
pub mod docker;
pub mod host;
pub mod owner;
pub mod place;
pub mod programs;
pub mod substrate;
pub mod tmux;
