//! The life of a request in `ARCHITECTURE.md` has the same steps, in the same order, as the engine.

use crate::repository::Repository;
use crate::{Failure, Violation, files};

const PAGE: &str = "ARCHITECTURE.md";
/// Where the engine may keep its list of steps.
const ENGINES: [&str; 2] = ["crates/seawall-core/src/engine/mod.rs", "crates/seawall-core/src/engine.rs"];

/// Compares the page with the engine, if the engine has a list.
pub fn violations(repository: &Repository) -> Result<Vec<Violation>, Failure> {
    let page = files::read_if_present(&repository.path(PAGE))?.unwrap_or_default();
    for engine in ENGINES {
        if let Some(source) = files::read_if_present(&repository.path(engine))?
            && let Some(steps) = steps_of_engine(&source)
        {
            return Ok(compare(&steps, &steps_of_page(&page), engine));
        }
    }
    Ok(Vec::new())
}

/// What differs.
pub fn compare(engine: &[String], page: &[String], source: &str) -> Vec<Violation> {
    if engine == page {
        return Vec::new();
    }
    let message = format!(
        "the life of a request differs from `STEPS` in {source}\n    engine: {}\n    page:   {}",
        engine.join(", "),
        page.join(", ")
    );
    vec![Violation::new(PAGE, message)]
}

/// The strings of `const STEPS`, or `None` if there is no such list.
pub fn steps_of_engine(source: &str) -> Option<Vec<String>> {
    let list = &source[source.find("const STEPS")?..];
    let list = &list[..list.find("];")?];
    let quoted = list.split('"').skip(1).step_by(2);
    Some(quoted.map(str::to_owned).collect())
}

/// The bold words of the numbered table rows, such as `| 1 | **accept**: ... |`.
pub fn steps_of_page(page: &str) -> Vec<String> {
    page.lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix('|')?.split('|');
            cells.next()?.trim().parse::<u32>().ok()?;
            cells.next()?.split("**").nth(1).map(str::to_owned)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENGINE: &str = "pub const STEPS: [&str; 2] = [\n    \"accept\",\n    \"classify and observe\",\n];\n";

    #[test]
    fn the_same_steps_in_the_same_order_pass() {
        let page = "| # | step |\n| --- | --- |\n| 1 | **accept**: x | `a` |\n| 2 | **classify and observe**: y |\n";
        let engine = steps_of_engine(ENGINE).expect("the source has a list");
        assert_eq!(compare(&engine, &steps_of_page(page), "engine.rs"), []);
    }

    #[test]
    fn a_missing_or_moved_step_is_found() {
        let engine = steps_of_engine(ENGINE).expect("the source has a list");
        let swapped = "| 1 | **classify and observe** |\n| 2 | **accept** |\n";
        assert_eq!(compare(&engine, &steps_of_page(swapped), "engine.rs").len(), 1);
        assert_eq!(compare(&engine, &steps_of_page("| 1 | **accept** |\n"), "engine.rs").len(), 1);
    }

    #[test]
    fn an_engine_without_a_list_is_not_judged() {
        assert_eq!(steps_of_engine("fn main() {}"), None);
    }
}
