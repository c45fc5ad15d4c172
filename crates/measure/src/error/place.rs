//! Why a text is no place to go to, in the language of the moment. In English it is what `Display` writes.

use wirespeed_reach::{LONGEST_PLACE_PART, PlaceError, PlaceReason};
use wirespeed_words::{quoted, say};

/// The message in the language of the moment.
pub fn place_said(error: &PlaceError) -> String {
    say!(
        "reach-no-place",
        place = quoted(&error.place),
        reason = reason_said(&error.reason)
    )
}

fn reason_said(reason: &PlaceReason) -> String {
    match reason {
        PlaceReason::UnknownWay => say!("reach-place-unknown-way"),
        PlaceReason::OpenBracket => say!("reach-place-open-bracket"),
        PlaceReason::BehindBracket => say!("reach-place-behind-bracket"),
        PlaceReason::NoBrackets => say!("reach-place-no-brackets"),
        PlaceReason::NoPort(text) => say!("reach-place-no-port", text = quoted(text)),
        PlaceReason::PortZero => say!("reach-place-port-zero"),
        PlaceReason::NamespacePath => say!("reach-place-namespace-path"),
        PlaceReason::Missing(part) => say!("reach-place-missing", part = part.word()),
        PlaceReason::LikeAnOption(part) => {
            say!("reach-place-like-an-option", part = part.word())
        }
        PlaceReason::TooLong(part) => say!(
            "reach-place-too-long",
            part = part.word(),
            most = LONGEST_PLACE_PART
        ),
        PlaceReason::Character(part, character) => say!(
            "reach-place-character",
            part = part.word(),
            character = quoted(&character.to_string())
        ),
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_reach::PlacePart;
    use wirespeed_words::{Language, within};

    use super::*;

    #[test]
    fn in_english_it_is_what_the_error_writes_and_in_french_it_is_french() {
        let parts = [PlacePart::Namespace, PlacePart::User, PlacePart::Host];
        let mut reasons = vec![
            PlaceReason::UnknownWay,
            PlaceReason::OpenBracket,
            PlaceReason::BehindBracket,
            PlaceReason::NoBrackets,
            PlaceReason::NoPort("99999".to_owned()),
            PlaceReason::PortZero,
            PlaceReason::NamespacePath,
        ];
        reasons.extend(parts.map(PlaceReason::Missing));
        reasons.extend(parts.map(PlaceReason::LikeAnOption));
        reasons.extend(parts.map(PlaceReason::TooLong));
        reasons.extend(parts.map(|part| PlaceReason::Character(part, '\n')));
        for reason in reasons {
            let english = reason.to_string();
            assert_eq!(reason_said(&reason), english);
            let french = within(Language::French, || reason_said(&reason));
            let left = ["namespace", "user", "host ", "the ", "a ", "is "]
                .iter()
                .find(|word| french.starts_with(**word) || french.contains(&format!(" {word}")));
            assert!(left.is_none(), "{left:?} in {french:?}");
            assert_ne!(french, english);
            let error = PlaceError {
                place: "ssh://-x".to_owned(),
                reason,
            };
            assert_eq!(place_said(&error), error.to_string());
            let french = within(Language::French, || place_said(&error));
            assert!(french.contains("«\u{202f}ssh://-x\u{202f}»"), "{french}");
        }
    }
}
