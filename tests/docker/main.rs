//! Instances in containers, on a real engine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

/// Each of these tests, on docker and on podman.
macro_rules! on_each_engine {
    ($($name:ident,)*) => {
        $(mod $name {
            use abide_model::container::EngineKind;

            #[test]
            fn docker() {
                super::$name(EngineKind::Docker);
            }

            #[test]
            fn podman() {
                super::$name(EngineKind::Podman);
            }
        })*
    };
}

mod bring_up;
mod contained;
mod egress;
mod faults;
mod images;
mod inside;
mod life;
mod look;
mod outside;
mod own_engine;
mod rootless;
mod sidecar;
mod silence;
mod take_down;
