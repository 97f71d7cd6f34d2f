//! What is on a page: the cells of a tree, and the values in them. Nothing that a page says is believed without looking.

use super::Look;
use super::pages::Pages;

/// A row that is longer is not read.
const MAX_ROW: usize = 256 << 20;

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    /// Bytes, which no column that is read here holds.
    Bytes,
}

impl Value {
    pub(crate) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(crate) fn into_text(self) -> Option<String> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(crate) fn integer(&self) -> Option<i64> {
        if let Self::Integer(number) = self { Some(*number) } else { None }
    }
}

/// What a page is to its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    TableInterior,
    TableLeaf,
    IndexInterior,
    IndexLeaf,
}

/// A page of a tree.
pub(super) struct Node {
    page: Vec<u8>,
    /// Where on the page the tree's part begins: on the first one after the header of the file.
    start: usize,
    kind: Kind,
}

impl Node {
    pub fn new(pages: &Pages, number: u32) -> Look<Self> {
        let (page, start) = (pages.page(number)?, if number == 1 { 100 } else { 0 });
        let kind = match page.get(start) {
            Some(2) => Kind::IndexInterior,
            Some(5) => Kind::TableInterior,
            Some(10) => Kind::IndexLeaf,
            Some(13) => Kind::TableLeaf,
            _ => return Err(damaged()),
        };
        Ok(Self { page, start, kind })
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    fn is_interior(&self) -> bool {
        matches!(self.kind, Kind::TableInterior | Kind::IndexInterior)
    }

    /// The page with everything after the last cell.
    pub fn last_child(&self) -> Option<u32> {
        self.is_interior().then(|| number(&self.page, self.start + 8, 4)).flatten().map(|n| n as u32)
    }
}

/// A cell of a tree's page.
pub(super) struct Cell<'a> {
    /// The page with everything before it, on a page that has such.
    pub child: u32,
    /// The row's number, in a table.
    pub row: i64,
    pub payload: Payload<'a>,
}

/// The bytes of a row, of which the last may be on other pages.
pub(super) struct Payload<'a> {
    pages: &'a Pages,
    local: &'a [u8],
    length: usize,
    /// The first of the other pages.
    rest: u32,
}

/// The cells of `node`, in order.
pub(super) fn cells<'a>(pages: &'a Pages, node: &'a Node) -> impl Iterator<Item = Look<Cell<'a>>> {
    let header = node.start + if node.is_interior() { 12 } else { 8 };
    let count = number(&node.page, node.start + 3, 2).unwrap_or(0) as usize;
    (0..count).map(move |index| {
        let at = number(&node.page, header + 2 * index, 2).ok_or_else(damaged)?;
        cell(pages, node, at as usize).ok_or_else(damaged)
    })
}

fn cell<'a>(pages: &'a Pages, node: &'a Node, mut at: usize) -> Option<Cell<'a>> {
    let page = &node.page;
    let mut child = 0;
    if node.is_interior() {
        child = number(page, at, 4)? as u32;
        at += 4;
    }
    let length = match node.kind {
        Kind::TableInterior => 0,
        _ => usize::try_from(varint(page, &mut at)?).ok().filter(|length| *length <= MAX_ROW)?,
    };
    let row = match node.kind {
        Kind::TableInterior | Kind::TableLeaf => varint(page, &mut at)?,
        Kind::IndexInterior | Kind::IndexLeaf => 0,
    };
    let here = local_part(length, pages.usable(), node.kind);
    let local = page.get(at..at.checked_add(here)?)?;
    let rest = if here < length { number(page, at + here, 4)? as u32 } else { 0 };
    Some(Cell { child, row, payload: Payload { pages, local, length, rest } })
}

/// How many bytes of a row of `length` bytes are on the page of its cell.
fn local_part(length: usize, usable: usize, kind: Kind) -> usize {
    let most = match kind {
        Kind::TableLeaf | Kind::TableInterior => usable - 35,
        Kind::IndexLeaf | Kind::IndexInterior => (usable - 12) * 64 / 255 - 23,
    };
    if length <= most {
        return length;
    }
    let least = (usable - 12) * 32 / 255 - 23;
    let fitting = least + (length - least) % (usable - 4);
    if fitting <= most { fitting } else { least }
}

impl Payload<'_> {
    /// The values of the row.
    pub fn values(&self) -> Look<Vec<Value>> {
        let mut bytes = self.local.to_vec();
        let mut next = self.rest;
        while bytes.len() < self.length {
            let page = self.pages.page(next)?;
            let wanted = (self.length - bytes.len()).min(page.len() - 4);
            bytes.extend_from_slice(&page[4..4 + wanted]);
            next = number(&page, 0, 4).unwrap_or(0) as u32;
        }
        values(&bytes).ok_or_else(damaged)
    }
}

fn values(row: &[u8]) -> Option<Vec<Value>> {
    let mut at = 0;
    let mut body = usize::try_from(varint(row, &mut at)?).ok()?;
    let header = row.get(..body)?;
    let mut values = Vec::new();
    while at < header.len() {
        let kind = varint(header, &mut at)?;
        let length = match kind {
            0 | 8 | 9 => 0,
            1..=4 => kind as usize,
            5 => 6,
            6 | 7 => 8,
            12.. => usize::try_from((kind - 12) / 2).ok()?,
            _ => return None,
        };
        let bytes = row.get(body..body.checked_add(length)?)?;
        body += length;
        values.push(match kind {
            0 => Value::Null,
            7 => Value::Real(f64::from_be_bytes(bytes.try_into().ok()?)),
            8 => Value::Integer(0),
            9 => Value::Integer(1),
            1..=6 => Value::Integer(signed(bytes)),
            text if text % 2 == 1 => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
            _ => Value::Bytes,
        });
    }
    Some(values)
}

/// The big-endian number of `length` bytes at `at`.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn signed(bytes: &[u8]) -> i64 {
    let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
    bytes.iter().fold(if negative { -1 } else { 0 }, |number, byte| number << 8 | i64::from(*byte))
}

/// The number of one to nine bytes at `at`, which moves behind it.
fn varint(bytes: &[u8], at: &mut usize) -> Option<i64> {
    let mut value: u64 = 0;
    for count in 0..9 {
        let byte = *bytes.get(*at)?;
        *at += 1;
        if count == 8 {
            return Some((value << 8 | u64::from(byte)).cast_signed());
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(value.cast_signed())
}

fn damaged() -> String {
    "the database is damaged".to_owned()
}
