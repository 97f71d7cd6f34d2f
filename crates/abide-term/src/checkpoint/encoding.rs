//! The plain encoding that a checkpoint is written in: little-endian numbers, lengths before bytes.
//!
//! A reader never trusts a length further than the bytes that are there, so damaged input can neither panic nor make it
//! allocate more than the input is long.

#[derive(Default)]
pub(crate) struct Writer {
    pub(crate) out: Vec<u8>,
}

impl Writer {
    pub(crate) fn u8(&mut self, n: u8) {
        self.out.push(n);
    }

    pub(crate) fn bool(&mut self, on: bool) {
        self.u8(on.into());
    }

    pub(crate) fn u16(&mut self, n: u16) {
        self.out.extend_from_slice(&n.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, n: u32) {
        self.out.extend_from_slice(&n.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, n: u64) {
        self.out.extend_from_slice(&n.to_le_bytes());
    }

    pub(crate) fn usize(&mut self, n: usize) {
        self.u32(n as u32);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.usize(bytes.len());
        self.out.extend_from_slice(bytes);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    pub(crate) fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.bool(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
    }
}

/// Takes bytes apart; every answer is `None` once they are used up.
pub(crate) struct ByteReader<'a> {
    rest: &'a [u8],
}

impl<'a> ByteReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.rest.split_at_checked(len)?;
        self.rest = tail;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(|[n]| n)
    }

    pub(crate) fn bool(&mut self) -> Option<bool> {
        match self.u8()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn usize(&mut self) -> Option<usize> {
        self.u32().map(|n| n as usize)
    }

    /// A number of things that take at least a byte each.
    pub(crate) fn count(&mut self, max: usize) -> Option<usize> {
        self.usize().filter(|n| *n <= max.min(self.rest.len()))
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.usize()?;
        self.take(len)
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        let text = std::str::from_utf8(self.bytes()?).ok()?;
        (!text.chars().any(char::is_control)).then(|| text.to_owned())
    }

    pub(crate) fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        Some(if self.bool()? { Some(read(self)?) } else { None })
    }

    pub(crate) fn list<T>(
        &mut self,
        max: usize,
        mut read: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        (0..self.count(max)?).map(|_| read(self)).collect()
    }
}
