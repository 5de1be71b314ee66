//! The yardsticks of `cargo xtask evidence cost`: an instant upstream, a bare hyper proxy, and a load that is precise to
//! microseconds. Not part of the program: the fleet and `seawall load` model more and cost more.
//!
//! `bench upstream PORT`, `bench bare PORT UPSTREAM_PORT`, `bench load PORT MODE NUMBER SECONDS`,
//! `bench fleet PORT SLOTS MILLISECONDS`

mod bare;
mod load;
mod slow;
mod upstream;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let number = |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic_usage());
    let small = |text: &str| text.parse::<u32>().unwrap_or_else(|_| panic_usage());
    let port = |text: &str| text.parse::<u16>().unwrap_or_else(|_| panic_usage());
    match words[..] {
        ["upstream", listen] => runtime.block_on(upstream::serve(port(listen))),
        ["bare", listen, behind] => runtime.block_on(bare::serve(port(listen), port(behind))),
        ["load", target, mode, count, seconds] => {
            runtime.block_on(load::run(port(target), mode, number(count), number(seconds)));
        }
        ["fleet", listen, slots, milliseconds] => {
            let (slots, service_ms) = (small(slots), small(milliseconds));
            runtime.block_on(slow::serve(port(listen), slots, service_ms));
        }
        _ => panic_usage(),
    }
    ExitCode::SUCCESS
}

#[expect(clippy::panic, reason = "a yardstick that is started wrongly by its own xtask has nothing better to do")]
fn panic_usage() -> ! {
    panic!(
        "usage: bench upstream PORT | bench bare PORT UPSTREAM_PORT | bench load PORT MODE NUMBER SECONDS \
         | bench fleet PORT SLOTS MILLISECONDS"
    )
}
