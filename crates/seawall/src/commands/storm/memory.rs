//! Resident memory of a process and all of its children, from `/proc`.

use std::fs;

/// A page of memory on every Linux that Rust runs on with 4 KiB pages; what has larger ones tells less than it uses.
const PAGE_BYTES: u64 = 4096;

/// Whether there is such a process. Where there is no `/proc` nobody can tell, and it is taken to be there.
pub(super) fn is_there(process: u32) -> bool {
    if fs::metadata("/proc/self").is_err() {
        return true;
    }
    // One that has ended and is not yet waited for has no memory any more.
    fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Bytes that a process and its children have in memory now; `None` where that cannot be read.
pub(super) fn resident_bytes(process: u32) -> Option<u64> {
    let mut all = vec![process];
    let mut next = 0;
    while let Some(parent) = all.get(next).copied() {
        next += 1;
        let more: Vec<u32> = children(parent).into_iter().filter(|child| !all.contains(child)).collect();
        all.extend(more);
    }
    let pages = |process: &u32| {
        let text = fs::read_to_string(format!("/proc/{process}/statm")).ok()?;
        text.split(' ').nth(1)?.parse::<u64>().ok()
    };
    let pages: Vec<u64> = all.iter().filter_map(pages).collect();
    (!pages.is_empty()).then(|| pages.iter().sum::<u64>() * PAGE_BYTES)
}

fn children(process: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    let lists = threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<u32>>()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_counts_with_its_children() {
        let own = std::process::id();
        let alone = resident_bytes(own).expect("this process is there");
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("cat starts");
        assert!(children(own).contains(&child.id()));
        assert!(is_there(child.id()) && alone > 1_000_000);
        child.kill().expect("it is ours");
        // Until it is waited for it is there in name only.
        child.wait().expect("it ends");
        assert!(!is_there(child.id()));
        assert_eq!(resident_bytes(child.id()), None);
    }
}
