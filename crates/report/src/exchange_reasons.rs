//! Why exchanges failed, as people read it. Records and machines say it in English, the same for the same reason.

use wirespeed_measure::{CUT_OFF, NOT_BEGUN};
use wirespeed_words::say;

/// `connect: timed out` in the reader's language. What is not known is told as it is.
pub(crate) fn told(reason: &str) -> String {
    if reason == CUT_OFF {
        return say!("report-exchanges-cut-off");
    }
    if reason == NOT_BEGUN {
        return say!("report-exchanges-not-begun");
    }
    match reason.split_once(": ") {
        Some(("connect", why)) => say!("report-exchanges-at-connect", why = cause(why)),
        Some(("answer", why)) => say!("report-exchanges-at-answer", why = cause(why)),
        _ => reason.to_owned(),
    }
}

fn cause(why: &str) -> String {
    match why {
        "timed out" => say!("report-exchanges-timed-out"),
        "connection timed out" => say!("report-exchanges-connection-timed-out"),
        "closed early" => say!("report-exchanges-closed-early"),
        "more than was asked for" => say!("report-exchanges-more-than-asked"),
        "connection refused" => say!("report-exchanges-refused"),
        "connection reset by peer" => say!("report-exchanges-reset"),
        "broken pipe" => say!("report-exchanges-broken-pipe"),
        "no route to host" => say!("report-exchanges-no-route"),
        "network is unreachable" => say!("report-exchanges-unreachable"),
        "network is down" => say!("report-exchanges-network-down"),
        "no free local port" => say!("report-exchanges-no-port"),
        "no more open files" => say!("report-exchanges-no-files"),
        "no buffer space available" => say!("report-exchanges-no-buffers"),
        "permission denied" => say!("report-exchanges-denied"),
        "operation not permitted" => say!("report-exchanges-not-permitted"),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_words::{Language, within};

    use super::*;

    const KNOWN: [&str; 8] = [
        "connect: timed out",
        "connect: connection refused",
        "answer: connection reset by peer",
        "answer: closed early",
        "connect: no free local port",
        "connect: network is unreachable",
        CUT_OFF,
        NOT_BEGUN,
    ];

    #[test]
    fn english_is_what_machines_say_and_french_is_not() {
        for reason in KNOWN {
            assert_eq!(told(reason), reason);
            let french = within(Language::French, || told(reason));
            assert_ne!(french, reason);
        }
        let french = within(Language::French, || told("connect: timed out"));
        assert_eq!(french, "connexion\u{202f}: délai dépassé");
    }

    #[test]
    fn what_is_not_known_is_told_as_it_is() {
        for (reason, expected) in [
            ("a mishap", "a mishap"),
            ("answer: a mishap", "réponse\u{202f}: a mishap"),
            ("elsewhere: timed out", "elsewhere: timed out"),
        ] {
            assert_eq!(within(Language::French, || told(reason)), expected);
        }
    }
}
