//! Machines by the names that people read. Records call this machine `here`, in any language.

use wirespeed_words::say;

use crate::room;

/// One machine's name, in one line.
pub(crate) fn name(machine: &str) -> String {
    room::name(&told(machine))
}

/// `wg0 on here`, `here to ssh://root@nas`: with this machine as the reader's language names it.
pub fn told(place: &str) -> String {
    // A namespace or a host may be called so, too, but has something before it: `netns:here`.
    let parts_of_names = |letter: char| letter.is_alphanumeric() || "-_.:/@[]".contains(letter);
    let mut out = String::with_capacity(place.len());
    let mut rest = place;
    while !rest.is_empty() {
        let name = rest
            .find(|letter| !parts_of_names(letter))
            .unwrap_or(rest.len());
        match &rest[..name] {
            "here" => out.push_str(&say!("report-this-machine")),
            other => out.push_str(other),
        }
        let between = rest[name..]
            .find(parts_of_names)
            .unwrap_or(rest.len() - name);
        out.push_str(&rest[name..name + between]);
        rest = &rest[name + between..];
    }
    out
}

#[cfg(test)]
mod tests {
    use wirespeed_words::{Language, within};

    use super::*;

    #[test]
    fn this_machine_has_a_name_in_each_language() {
        for place in [
            "wg0 on here",
            "here to netns:here (here, core 0)",
            "",
            "é here",
        ] {
            assert_eq!(told(place), place);
        }
        let french = |place: &str| within(Language::French, || told(place));
        assert_eq!(french("wg0 sur here"), "wg0 sur cette machine");
        assert_eq!(
            french("here vers ssh://root@here.example (here, cœur 0)"),
            "cette machine vers ssh://root@here.example (cette machine, cœur 0)"
        );
        assert_eq!(french("netns:here"), "netns:here");
        assert_eq!(french("there, adhere"), "there, adhere");
    }
}
