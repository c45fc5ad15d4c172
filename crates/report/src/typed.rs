//! Commands with the machine they are for, as people read it.

use wirespeed_words::say;

use crate::places;

/// What stands between a command and its machine in records, in every language.
const ON: &str = "  # on ";
/// What a comment behind a command begins with.
pub(crate) const COMMENT: &str = "  # ";

/// Lines of commands with the comment in the reader's language: `nft list ruleset  # on gw1`.
pub(crate) fn told(commands: &str) -> String {
    let lines: Vec<String> = commands.lines().map(line).collect();
    lines.join("\n")
}

/// Is it commands, and no sentence about what to do?
pub(crate) fn is_typed(text: &str) -> bool {
    text.lines().all(|line| line.contains(COMMENT))
}

/// Behind a command, where it is to be typed, on another machine than this one.
pub(crate) fn behind(host: &str) -> String {
    format!(
        "{COMMENT}{}",
        say!("report-typed-on", host = places::name(host))
    )
}

fn line(command: &str) -> String {
    match command.rsplit_once(ON) {
        Some((typed, host)) => format!("{typed}{}", behind(host)),
        None => command.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use wirespeed_words::{Language, within};

    use super::*;

    #[test]
    fn the_machine_is_told_in_the_readers_language_and_nothing_else_changes() {
        let two = "wg-quick down wg0  # on gw1\nwg-quick up wg0  # on gw1";
        assert_eq!(told(two), two);
        let french = |text: &str| within(Language::French, || told(text));
        assert_eq!(
            french(two),
            "wg-quick down wg0  # sur gw1\nwg-quick up wg0  # sur gw1"
        );
        assert_eq!(
            french("nft list ruleset  # on here"),
            "nft list ruleset  # sur cette machine"
        );
        assert!(is_typed(two) && is_typed(&french(two)));
        assert!(!is_typed("boot the old one from the boot menu"));
        for text in ["", "Reboot.", "nft list ruleset  # what is on it?"] {
            assert_eq!(french(text), text);
        }
    }
}
