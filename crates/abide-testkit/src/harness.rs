//! The harness of a test binary that also plays other parts: it lists and runs tests as libtest does, so that every runner
//! finds them.

use libtest_mimic::{Arguments, Trial};

/// A test by its name.
pub type Test = (&'static str, fn());

/// Does what the command line asks of a test binary, and ends the process.
pub fn run(tests: &[Test]) -> ! {
    let mut arguments = Arguments::from_args();
    // On the main thread: these tests fork processes that must have only one.
    arguments.test_threads = Some(1);
    let trial = |&(name, test): &Test| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    let trials = tests.iter().map(trial).collect();
    libtest_mimic::run(&arguments, trials).exit()
}
