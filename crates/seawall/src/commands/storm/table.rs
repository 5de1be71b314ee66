//! Rows for people.

use super::row::Row;
use crate::tables::{lines, plain};
use comfy_table::{Cell, CellAlignment, ContentArrangement};
use std::fmt::Write as _;

const HEADERS: [&str; 11] =
    ["storm", "load", "through", "good", "goodput", "upstream", "tries", "p50", "p99", "back", "memory"];

/// A storm whose requests are sent so much later than planned is not the one that was asked for.
const LATE_MS: f64 = 100.0;

/// A table of all rows, what each of them came to, and what the words mean.
pub(super) fn text(rows: &[Row], coloured: bool) -> String {
    let mut table = plain(coloured);
    // A narrow terminal breaks the lines better than a table that breaks the words.
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(HEADERS);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    for row in rows {
        let mut cells = vec![Cell::new(&row.storm), Cell::new(row.load), Cell::new(&row.name)];
        cells.extend(figures(row).into_iter().map(|figure| Cell::new(figure).set_alignment(CellAlignment::Right)));
        table.add_row(cells);
    }
    let mut text = lines(&table);
    text.push('\n');
    for row in rows {
        let told: Vec<String> = row.outcomes.iter().map(|(name, count)| format!("{count} {name}")).collect();
        writeln!(text, "{} {} {}: {}", row.storm, row.load, row.name, told.join(", "))
            .expect("a string takes any text");
        if let (Some(simulated), Some([goodput, upstream])) = (&row.simulated, row.of_simulated()) {
            writeln!(
                text,
                "  in the simulator: goodput {:.3}, upstream {:.2}; live it is {:.0}% and {:.0}% of that",
                simulated.goodput,
                simulated.upstream_attempts,
                100.0 * goodput,
                100.0 * upstream
            )
            .expect("a string takes any text");
        }
    }
    for row in rows.iter().filter(|row| row.late_p99_ms > LATE_MS) {
        writeln!(
            text,
            "warning: {} {} {}: requests were sent {:.0} ms late (p99); this machine is too busy, and the row tells little",
            row.storm, row.load, row.name, row.late_p99_ms
        )
        .expect("a string takes any text");
    }
    text.push_str(
        "\ngood: requests answered in time, as a part of all; goodput: as a part of the oracle's; upstream and tries: \
         attempts at\nthe servers and at the balancer, for each request; p50, p99 and back (goodput after the brown-out's \
         end) in seconds;\nmemory: the balancer's most, in MB.\n",
    );
    text
}

fn figures(row: &Row) -> [String; 8] {
    let figures = &row.figures;
    let never = if figures.is_back() { "" } else { ">" };
    #[expect(clippy::cast_precision_loss, reason = "memory is far below 2^53 bytes")]
    let memory = row.peak_memory_bytes.map_or_else(String::new, |bytes| format!("{:.0}", bytes as f64 / 1e6));
    #[expect(clippy::cast_precision_loss, reason = "counts of a run stay far below 2^53")]
    let good = figures.good / figures.requests.max(1) as f64;
    [
        format!("{good:.3}"),
        format!("{:.3}", figures.goodput),
        format!("{:.2}", figures.upstream_attempts),
        format!("{:.2}", figures.client_attempts),
        format!("{:.1}", figures.p50_seconds),
        format!("{:.1}", figures.p99_seconds),
        format!("{never}{:.0}", figures.recovery()),
        memory,
    ]
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::*;
    use seawall_sim::storms::Figures;

    #[test]
    fn each_row_is_told_with_what_its_requests_came_to() {
        let mut stuck = row("nginx", "B", 0.8, 0.25);
        stuck.figures.recovery_seconds = vec![None];
        stuck.peak_memory_bytes = None;
        stuck.late_p99_ms = 250.0;
        let simulated = Figures { goodput: 0.99, upstream_attempts: 1.0, ..Figures::default() };
        let live = Row { simulated: Some(simulated), ..row("seawall", "A", 0.8, 0.97) };
        let text = text(&[live, stuck], false);
        let found: Vec<&str> = text.lines().collect();
        let words = |line: usize| found[line].split_whitespace().collect::<Vec<&str>>();
        assert_eq!(words(2), ["A", "0.8", "seawall", "0.970", "0.970", "1.02", "1.50", "0.3", "9.1", "1", "20"]);
        assert_eq!(words(3), ["B", "0.8", "nginx", "0.250", "0.250", "1.02", "1.50", "0.3", "9.1", ">70"]);
        assert!(text.contains("A 0.8 seawall: 3000 answered\n"), "{text}");
        assert_eq!(text.matches("warning: B 0.8 nginx: requests were sent 250 ms late").count(), 1);
        assert_eq!(text.matches("warning").count(), 1);
        assert!(text.contains("goodput 0.990, upstream 1.00; live it is 98% and 102% of that"), "{text}");
    }
}
