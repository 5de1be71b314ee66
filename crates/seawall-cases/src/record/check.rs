//! What the schema of a record cannot say.

use super::Record;
use seawall_document::Places;

/// Reports what does not fit together.
pub(super) fn record(record: &Record, places: &mut Places<'_>) {
    let timeline = &record.timeline;
    if let (Some(detected), Some(resolved)) = (timeline.detected_after, timeline.resolved_after)
        && detected.0 > resolved.0
    {
        let message = format!("`detected_after` ({detected}) is longer than `resolved_after` ({resolved})");
        let remedy = "count both from the first effect on users; what was seen only afterwards has no `detected_after`";
        places.report_at("/timeline/detected_after", message, remedy);
    }
    for (index, _) in record.related.iter().enumerate().filter(|(_, id)| **id == record.id) {
        places.report_at(&format!("/related/{index}"), "a case is not related to itself", "remove it");
    }
    if record.recurrence_of.as_ref() == Some(&record.id) {
        places.report_at("/recurrence_of", "a case is no recurrence of itself", "write the earlier case, or null");
    }
    let review = &record.review;
    if review.reviewed_at.is_some() != review.reviewed_by.is_some() {
        let remedy = "write both `reviewed_at` and `reviewed_by`, or null for both";
        places.report_at("/review", "a review has a time and somebody who did it", remedy);
    }
}
