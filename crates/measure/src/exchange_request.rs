//! What a short exchange begins with: who asks, with how many bytes, for how many.

/// Bytes of the beginning; the rest of a request is filling.
pub(crate) const HEADER: usize = 16;
/// Largest request and answer.
pub(crate) const REQUEST_AT_MOST: u32 = 64 << 10;
pub(crate) const RESPONSE_AT_MOST: u32 = 1 << 20;

/// The beginning of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    /// Of the sample.
    pub(crate) token: u64,
    /// Bytes of the request, these included.
    pub(crate) length: u32,
    /// Bytes asked for.
    pub(crate) response: u32,
}

impl Request {
    /// All of its bytes.
    pub(crate) fn bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.length as usize);
        bytes.extend(self.token.to_be_bytes());
        bytes.extend(self.length.to_be_bytes());
        bytes.extend(self.response.to_be_bytes());
        bytes.resize((self.length as usize).max(HEADER), 0x5a);
        bytes
    }

    /// `None` = nobody of ours asks.
    pub(crate) fn read(header: &[u8; HEADER], token: u64) -> Option<Self> {
        let (theirs, rest) = header.split_first_chunk::<8>()?;
        let (length, response) = rest.split_first_chunk::<4>()?;
        let request = Self {
            token: u64::from_be_bytes(*theirs),
            length: u32::from_be_bytes(*length),
            response: u32::from_be_bytes(*response.first_chunk::<4>()?),
        };
        (request.token == token && request.is_sensible()).then_some(request)
    }

    pub(crate) fn is_sensible(self) -> bool {
        (HEADER as u32..=REQUEST_AT_MOST).contains(&self.length)
            && (1..=RESPONSE_AT_MOST).contains(&self.response)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_request_is_read_as_it_was_written(token: u64, length in 16..=REQUEST_AT_MOST, response in 1..=RESPONSE_AT_MOST) {
            let request = Request { token, length, response };
            let bytes = request.bytes();
            prop_assert_eq!(bytes.len(), length as usize);
            prop_assert_eq!(Request::read(bytes.first_chunk().unwrap(), token), Some(request));
            prop_assert_eq!(Request::read(bytes.first_chunk().unwrap(), token ^ 1), None);
        }

        #[test]
        fn garbage_is_nobodys_request(header: [u8; HEADER], token: u64) {
            if let Some(request) = Request::read(&header, token) {
                prop_assert!(request.is_sensible());
                prop_assert_eq!(&request.bytes()[..HEADER], &header);
            }
        }
    }
}
