use std::path::Path;

use super::*;

/// In a thread of its own, whose privileges nobody misses.
fn alone<R: Send + 'static>(run: impl FnOnce() -> R + Send + 'static) -> R {
    std::thread::spawn(run).join().unwrap()
}

#[test]
fn capabilities_are_gone_for_good() {
    let (result, now, again) = alone(|| {
        let result = drop_capabilities();
        let now = rustix::thread::capabilities(None).unwrap();
        let all = CapabilitySets {
            effective: CapabilitySet::all(),
            permitted: CapabilitySet::all(),
            inheritable: CapabilitySet::empty(),
        };
        (result, now, rustix::thread::set_capabilities(None, all))
    });
    assert!(result.is_ok(), "{result:?}");
    assert!(KEPT.contains(now.effective) && KEPT.contains(now.permitted));
    assert!(again.is_err());
}

#[test]
fn no_file_can_be_opened_and_only_ours_removed() {
    let folder = tempfile::tempdir().unwrap();
    let ours = folder.path().join("ours");
    std::fs::create_dir(&ours).unwrap();
    let files = [ours.join("socket"), folder.path().join("theirs")];
    for file in &files {
        std::fs::write(file, "").unwrap();
    }
    let [own, other] = files;
    let outcome = alone(move || {
        let result = enter_landlock(&[ours.clone(), "/nonexistent".into()]);
        let denied = |path: &Path| std::fs::File::open(path).is_err();
        let made = std::fs::write(ours.join("new"), "").is_ok();
        (
            result,
            denied(Path::new("/etc/passwd")) && denied(&own) && !made,
            std::fs::remove_file(&own).is_ok(),
            std::fs::remove_file(&other).is_err(),
        )
    });
    match outcome {
        (Ok(_), true, true, true) => {}
        (Err(why), ..) => {
            crate::testing::skip("no_file_can_be_opened_and_only_ours_removed", &why);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_device_that_keeps_all_says_so() {
    let report = serde_json::to_value(none()).unwrap();
    assert_eq!(report[4]["layer"], "seccomp");
    assert_eq!(report[4]["on"], false);
}
