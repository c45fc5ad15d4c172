//! Why a machine could not read the peers of a tunnel, as people read it. Machines say it in English, the same for the
//! same reason (`wirespeed-facts`).

use wirespeed_words::say;

/// The reason in the language of the moment. What is not known is told as it is.
pub(super) fn told(reason: &str) -> String {
    if let Some((socket, why)) = reason
        .strip_prefix("could not ask the daemon behind ")
        .and_then(|rest| rest.strip_suffix(" (is it running, and are you root?)"))
        .and_then(|rest| rest.split_once(": "))
    {
        return say!(
            "measure-daemon-not-asked",
            socket = socket,
            why = of_the_system(why)
        );
    }
    if let Some(socket) = reason
        .strip_prefix("the daemon behind ")
        .and_then(|rest| rest.strip_suffix(" gave no whole answer within 1 s"))
    {
        return say!("measure-daemon-silent", socket = socket);
    }
    if let Some(socket) = reason
        .strip_prefix("the daemon behind ")
        .and_then(|rest| rest.strip_suffix(" answered more than 32 MiB"))
    {
        return say!("measure-daemon-endless", socket = socket);
    }
    if let Some(errno) = reason.strip_prefix("the daemon refused to describe the device: errno ") {
        return say!("measure-daemon-refused", errno = errno);
    }
    if let Some(why) = reason.strip_prefix("the kernel refused to tell its WireGuard devices: ") {
        return say!("measure-kernel-refused", why = of_the_system(why));
    }
    reason.to_owned()
}

/// What people meet of the system's own words.
fn of_the_system(why: &str) -> String {
    match why {
        "Operation not permitted (os error 1)" => say!("measure-not-permitted"),
        "No such file or directory (os error 2)" => say!("measure-no-such-file"),
        "Permission denied (os error 13)" => say!("measure-permission-denied"),
        "Connection refused (os error 111)" => say!("measure-connection-refused"),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Error;

    use wirespeed_words::{Language, within};

    use super::*;

    #[test]
    fn english_is_what_machines_say_and_french_is_not() {
        let refused = Error::from_raw_os_error(1);
        let mut known = vec![
            "the daemon behind /var/run/wireguard/wg0.sock gave no whole answer within 1 s"
                .to_owned(),
            "the daemon behind /var/run/wireguard/wg0.sock answered more than 32 MiB".to_owned(),
            "the daemon refused to describe the device: errno -22".to_owned(),
            format!("the kernel refused to tell its WireGuard devices: {refused}"),
        ];
        known.extend([2, 13, 111].map(|number| {
            let why = Error::from_raw_os_error(number);
            format!(
                "could not ask the daemon behind /var/run/wireguard/wg0.sock: {why} (is it running, and are you root?)"
            )
        }));
        for reason in known {
            assert_eq!(told(&reason), reason);
            let french = within(Language::French, || told(&reason));
            for english in [" the ", "os error", "daemon behind"] {
                assert!(!french.contains(english), "{french}");
            }
        }
        let other = "the daemon's answer is not UAPI text: no errno";
        assert_eq!(within(Language::French, || told(other)), other);
    }
}
