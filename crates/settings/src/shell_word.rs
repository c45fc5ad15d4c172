//! Names as words of a shell command that a person may paste.

use std::borrow::Cow;

/// The text as one word of a POSIX shell's command, not its first. Interface names may hold `$`, `;` and quotes; a plain
/// word stays as it is.
pub fn shell_word(text: &str) -> Cow<'_, str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.,+@%/=:".contains(&byte);
    if !text.is_empty() && !text.starts_with('-') && text.bytes().all(plain) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("'{}'", text.replace('\'', r"'\''")))
    }
}

#[cfg(test)]
mod tests {
    use super::shell_word;

    #[test]
    fn only_what_a_shell_would_act_on_is_quoted() {
        assert_eq!(shell_word("wg-home.1"), "wg-home.1");
        assert_eq!(shell_word("aB+/c="), "aB+/c=");
        assert_eq!(shell_word("$(reboot)"), "'$(reboot)'");
        assert_eq!(shell_word("a'b;c"), r"'a'\''b;c'");
        assert_eq!(shell_word("-x"), "'-x'");
        assert_eq!(shell_word(""), "''");
    }
}
