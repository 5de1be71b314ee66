//! How well each method finds out how many requests an upstream serves at once.

use crate::evidence::{Measurement, Record, Run};
use crate::repository::Repository;
use crate::{Failure, command};

/// The entry of the table.
pub(super) const MEASUREMENT: Measurement = Measurement {
    name: "discovery",
    summary: "methods of capacity discovery: goodput against an oracle on shapes and laws, windows after steps",
    run: Run::Whole(run),
};

const SEEDS: &str = "8";

fn run(repository: &Repository) -> Result<Record, Failure> {
    let mut cargo = command::cargo();
    cargo.current_dir(repository.root());
    cargo.args(["run", "--release", "--quiet", "--package", "seawall-core", "--example", "discovery", "--", SEEDS]);
    let result = command::output(&mut cargo)?;
    Ok(Record {
        title: "Capacity discovery".to_owned(),
        method: format!(
            "The program `discovery` (an example of `seawall-core`) in virtual time: the capacity state of each method as \
             the engine uses it, behind a line with the engine's policy (late binding, the earliest deadline that is \
             still safe, admission by the best rate so far), clients with 10 s of patience, upstreams with slots and a \
             line of their own. 45 s with a brown-out from 12 to 22 s; {SEEDS} seeds, the same for all. Storm A: eight \
             places behind the slots, more is refused; storm B: an unbounded line. Goodput is what was served in time \
             over what one fast server that knows the future would have served. `told`: the slots are configured. \
             Each method starts at a window of eight."
        ),
        result,
        reading: "`told` is what the policy can reach at all; a method is judged by its worst cell and by its largest \
                  loss against `told`. `likelihood` assumes a line that is first in, first out; behind others it falls \
                  back to trials by the completion rate alone, which the rows with another order show to be slow. A \
                  floor on coming down: what was sent has to drain first, 3 s from 64 to 4 slots and 4 s from 16 to 1 \
                  here. Where one seed never settles its window is most often just outside the band, on trial, or \
                  kept after a cut that had cost throughput. A single cell with random service differs by 1 to 3 points \
                  between sets of seeds."
            .to_owned(),
    })
}
