//! Randomness for identifiers, a page of it at a time: asking the system for sixteen bytes costs as much as a look-up.

use crate::secret;

const PAGE: usize = 1024;

/// Random numbers that are no secrets.
pub(crate) struct Random {
    page: [u8; PAGE],
    used: usize,
}

impl Default for Random {
    fn default() -> Self {
        Self { page: [0; PAGE], used: PAGE }
    }
}

impl Random {
    /// The next number.
    pub(crate) fn next(&mut self) -> u128 {
        const SIZE: usize = size_of::<u128>();
        if self.used + SIZE > PAGE {
            self.page = secret::random();
            self.used = 0;
        }
        let mut bytes = [0; SIZE];
        bytes.copy_from_slice(&self.page[self.used..self.used + SIZE]);
        self.used += SIZE;
        u128::from_ne_bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_comes_twice() {
        let mut random = Random::default();
        let numbers: std::collections::HashSet<_> = (0..1_000).map(|_| random.next()).collect();
        assert_eq!(numbers.len(), 1_000);
    }
}
