//! A reader of `MessagePack`, no more of it than records use. It borrows what it reads.

use crate::declined::{Declined, Result};

/// How deep a value that is passed over may nest: as deep as Python's reader goes in our records,
/// and few enough that no input exhausts the stack.
const DEPTH_MAX: usize = 64;

const CUT_SHORT: Declined = Declined("a record is cut short");
const OTHER_TYPE: Declined = Declined("a field is of another type");

/// A number as it was stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// An integer of up to 64 bits, signed.
    Integer(i64),
    /// A floating-point number.
    Float(f64),
}

/// Reads one value after another.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(data: &'a [u8]) -> Self {
        Self { rest: data }
    }

    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(CUT_SHORT)?;
        self.rest = rest;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(CUT_SHORT)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.fixed::<1>()?[0])
    }

    /// A length of `bytes` bytes, big-endian.
    fn length(&mut self, bytes: usize) -> Result<usize> {
        let taken = self.take(bytes)?;
        Ok(taken
            .iter()
            .fold(0, |all, one| all << 8 | usize::from(*one)))
    }

    /// Takes a nil, if the next value is one.
    pub fn nil(&mut self) -> bool {
        let is_nil = self.rest.first() == Some(&0xc0);
        if is_nil {
            self.rest = &self.rest[1..];
        }
        is_nil
    }

    pub fn boolean(&mut self) -> Result<bool> {
        match self.byte()? {
            0xc2 => Ok(false),
            0xc3 => Ok(true),
            _ => Err(OTHER_TYPE),
        }
    }

    pub fn number(&mut self) -> Result<Number> {
        let integer = match self.byte()? {
            marker @ (0x00..=0x7f | 0xe0..=0xff) => i64::from(marker.cast_signed()),
            0xcc => i64::from(self.byte()?),
            0xcd => i64::from(u16::from_be_bytes(self.fixed()?)),
            0xce => i64::from(u32::from_be_bytes(self.fixed()?)),
            0xcf => i64::try_from(u64::from_be_bytes(self.fixed()?)).map_err(|_| OTHER_TYPE)?,
            0xd0 => i64::from(self.byte()?.cast_signed()),
            0xd1 => i64::from(i16::from_be_bytes(self.fixed()?)),
            0xd2 => i64::from(i32::from_be_bytes(self.fixed()?)),
            0xd3 => i64::from_be_bytes(self.fixed()?),
            0xca => return Ok(Number::Float(f32::from_be_bytes(self.fixed()?).into())),
            0xcb => return Ok(Number::Float(f64::from_be_bytes(self.fixed()?))),
            _ => return Err(OTHER_TYPE),
        };
        Ok(Number::Integer(integer))
    }

    pub fn integer(&mut self) -> Result<i64> {
        match self.number()? {
            Number::Integer(value) => Ok(value),
            Number::Float(_) => Err(OTHER_TYPE),
        }
    }

    pub fn float(&mut self) -> Result<f64> {
        Ok(match self.number()? {
            Number::Integer(value) => value as f64,
            Number::Float(value) => value,
        })
    }

    pub fn text(&mut self) -> Result<&'a str> {
        let length = match self.byte()? {
            marker @ 0xa0..=0xbf => usize::from(marker & 0x1f),
            0xd9 => self.length(1)?,
            0xda => self.length(2)?,
            0xdb => self.length(4)?,
            _ => return Err(OTHER_TYPE),
        };
        str::from_utf8(self.take(length)?).map_err(|_| Declined("a text is not UTF-8"))
    }

    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = match self.byte()? {
            0xc4 => self.length(1)?,
            0xc5 => self.length(2)?,
            0xc6 => self.length(4)?,
            _ => return Err(OTHER_TYPE),
        };
        self.take(length)
    }

    /// How many values the list that begins here has.
    pub fn list(&mut self) -> Result<usize> {
        match self.byte()? {
            marker @ 0x90..=0x9f => Ok(usize::from(marker & 0x0f)),
            0xdc => self.length(2),
            0xdd => self.length(4),
            _ => Err(OTHER_TYPE),
        }
    }

    /// How many pairs the map that begins here has.
    pub fn map(&mut self) -> Result<usize> {
        match self.byte()? {
            marker @ 0x80..=0x8f => Ok(usize::from(marker & 0x0f)),
            0xde => self.length(2),
            0xdf => self.length(4),
            _ => Err(OTHER_TYPE),
        }
    }

    /// Passes over a value, whatever it is.
    pub fn skip(&mut self) -> Result<()> {
        self.skip_within(DEPTH_MAX)
    }

    fn skip_within(&mut self, depth: usize) -> Result<()> {
        let Some(left) = depth.checked_sub(1) else {
            return Err(Declined("a field nests too deep"));
        };
        let marker = *self.rest.first().ok_or(CUT_SHORT)?;
        match marker {
            0xc0 | 0xc2 | 0xc3 => self.byte().map(drop),
            0x00..=0x7f | 0xe0..=0xff | 0xca..=0xd3 => self.skip_number(marker),
            0xa0..=0xbf | 0xd9..=0xdb => self.text().map(drop),
            0xc4..=0xc6 => self.bytes().map(drop),
            0x90..=0x9f | 0xdc | 0xdd => {
                for _ in 0..self.list()? {
                    self.skip_within(left)?;
                }
                Ok(())
            }
            0x80..=0x8f | 0xde | 0xdf => {
                for _ in 0..self.map()? {
                    self.skip_within(left)?;
                    self.skip_within(left)?;
                }
                Ok(())
            }
            _ => Err(Declined("a record holds an extension")),
        }
    }

    /// Passes over a number; unlike [`Reader::number`] it may be a large unsigned one.
    fn skip_number(&mut self, marker: u8) -> Result<()> {
        let bytes = match marker {
            0xcc | 0xd0 => 2,
            0xcd | 0xd1 => 3,
            0xce | 0xd2 | 0xca => 5,
            0xcf | 0xd3 | 0xcb => 9,
            _ => 1,
        };
        self.take(bytes).map(drop)
    }
}
