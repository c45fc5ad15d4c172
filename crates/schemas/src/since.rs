//! What has become of the schemas of an earlier release.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::breaks::breaks;

/// What in the schemas of `now` breaks those who read as the `earlier` ones say, a line each; both are texts by the name of their
/// file. Text that is no JSON is an error.
pub fn broken_since(
    earlier: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> serde_json::Result<Vec<String>> {
    let mut told = Vec::new();
    for (file, before) in earlier {
        let Some(now) = now.get(file) else {
            told.push(format!("{file}: it is published no more"));
            continue;
        };
        let before: Value = serde_json::from_str(before)?;
        let now: Value = serde_json::from_str(now)?;
        let breaks = breaks(&before, &now);
        told.extend(breaks.iter().map(|one| format!("{file}: {one}")));
    }
    Ok(told)
}
