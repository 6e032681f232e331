//! What goes into a statement and comes out of a row.

use std::error::Error as StdError;

use bytes::{BufMut, BytesMut};
use postgres::types::{IsNull, Type};
use rusqlite::types::{ToSqlOutput, ValueRef};

use super::{Error, Result};

/// A parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    Null(Column),
    Int(i64),
    Text(&'a str),
    Blob(&'a [u8]),
    /// A list, for PostgreSQL alone.
    List(Column, &'a [Value<'a>]),
}

/// What a column holds. PostgreSQL wants to know it of a null, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    Int,
    Text,
    Blob,
}

impl Value<'_> {
    /// The type of the parameter in PostgreSQL.
    pub(crate) fn postgres_type(&self) -> Type {
        match self {
            Self::Int(_) | Self::Null(Column::Int) => Type::INT8,
            Self::Text(_) | Self::Null(Column::Text) => Type::TEXT,
            Self::Blob(_) | Self::Null(Column::Blob) => Type::BYTEA,
            Self::List(Column::Int, _) => Type::INT8_ARRAY,
            Self::List(Column::Text, _) => Type::TEXT_ARRAY,
            Self::List(Column::Blob, _) => Type::BYTEA_ARRAY,
        }
    }
}

impl rusqlite::ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Self::Null(_) => ValueRef::Null,
            Self::Int(number) => ValueRef::Integer(number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
            Self::List(..) => return Err(rusqlite::Error::ToSqlConversionFailure("SQLite knows no lists".into())),
        }))
    }
}

impl postgres::types::ToSql for Value<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> std::result::Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match *self {
            Self::Null(_) => return Ok(IsNull::Yes),
            Self::Int(number) => out.put_i64(number),
            // A text of PostgreSQL can't hold U+0000. The protocol's texts have none; a peer's words might.
            Self::Text(text) if text.contains('\0') => out.put_slice(text.replace('\0', "\u{FFFD}").as_bytes()),
            Self::Text(text) => out.put_slice(text.as_bytes()),
            Self::Blob(bytes) => out.put_slice(bytes),
            Self::List(_, values) => return values.to_sql(kind, out),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    postgres::types::to_sql_checked!();
}

/// What can be a parameter.
pub(crate) trait ToSql {
    /// What its column holds.
    const COLUMN: Column;

    /// The parameter.
    fn value(&self) -> Value<'_>;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl ToSql for $number {
            const COLUMN: Column = Column::Int;

            fn value(&self) -> Value<'_> {
                Value::Int(i64::from(*self))
            }
        }
    )*};
}
numbers!(i64, u32, bool);

impl ToSql for str {
    const COLUMN: Column = Column::Text;

    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl ToSql for String {
    const COLUMN: Column = Column::Text;

    fn value(&self) -> Value<'_> {
        Value::Text(self)
    }
}

impl ToSql for Vec<u8> {
    const COLUMN: Column = Column::Blob;

    fn value(&self) -> Value<'_> {
        Value::Blob(self)
    }
}

impl<const N: usize> ToSql for [u8; N] {
    const COLUMN: Column = Column::Blob;

    fn value(&self) -> Value<'_> {
        Value::Blob(self)
    }
}

impl<T: ToSql> ToSql for Option<T> {
    const COLUMN: Column = T::COLUMN;

    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null(T::COLUMN), T::value)
    }
}

impl<T: ToSql + ?Sized> ToSql for &T {
    const COLUMN: Column = T::COLUMN;

    fn value(&self) -> Value<'_> {
        (**self).value()
    }
}

/// The parameters of a statement: a tuple, or an array of one type.
pub(crate) trait Params {
    fn values(&self) -> Vec<Value<'_>>;
}

impl Params for [&str; 0] {
    fn values(&self) -> Vec<Value<'_>> {
        Vec::new()
    }
}

impl Params for Vec<Value<'_>> {
    fn values(&self) -> Vec<Value<'_>> {
        self.clone()
    }
}

macro_rules! arrays {
    ($($length:literal),*) => {$(
        impl<T: ToSql> Params for [T; $length] {
            fn values(&self) -> Vec<Value<'_>> {
                self.iter().map(T::value).collect()
            }
        }
    )*};
}
arrays!(1, 2, 3, 4);

macro_rules! tuples {
    ($(($($part:ident . $at:tt),*)),*) => {$(
        impl<$($part: ToSql),*> Params for ($($part,)*) {
            fn values(&self) -> Vec<Value<'_>> {
                vec![$(self.$at.value()),*]
            }
        }
    )*};
}
tuples!(
    (A.0, B.1),
    (A.0, B.1, C.2),
    (A.0, B.1, C.2, D.3),
    (A.0, B.1, C.2, D.3, E.4),
    (A.0, B.1, C.2, D.3, E.4, F.5),
    (A.0, B.1, C.2, D.3, E.4, F.5, G.6),
    (A.0, B.1, C.2, D.3, E.4, F.5, G.6, H.7),
    (A.0, B.1, C.2, D.3, E.4, F.5, G.6, H.7, I.8),
    (A.0, B.1, C.2, D.3, E.4, F.5, G.6, H.7, I.8, J.9),
    (A.0, B.1, C.2, D.3, E.4, F.5, G.6, H.7, I.8, J.9, K.10),
    (A.0, B.1, C.2, D.3, E.4, F.5, G.6, H.7, I.8, J.9, K.10, L.11)
);

/// What stands in a column of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Found<'a> {
    Null,
    Int(i64),
    Text(&'a str),
    Blob(&'a [u8]),
    /// Something that no statement of the store gives.
    Other,
}

impl<'a> From<ValueRef<'a>> for Found<'a> {
    fn from(value: ValueRef<'a>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Int(number),
            ValueRef::Text(text) => std::str::from_utf8(text).map_or(Self::Other, Self::Text),
            ValueRef::Blob(bytes) => Self::Blob(bytes),
            ValueRef::Real(_) => Self::Other,
        }
    }
}

impl<'a> postgres::types::FromSql<'a> for Found<'a> {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> std::result::Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(match *kind {
            Type::INT8 => Self::Int(i64::from_sql(kind, raw)?),
            Type::INT4 => Self::Int(i64::from(i32::from_sql(kind, raw)?)),
            Type::INT2 => Self::Int(i64::from(i16::from_sql(kind, raw)?)),
            Type::OID => Self::Int(i64::from(u32::from_sql(kind, raw)?)),
            Type::BOOL => Self::Int(i64::from(bool::from_sql(kind, raw)?)),
            Type::TEXT | Type::VARCHAR | Type::NAME | Type::UNKNOWN => Self::Text(std::str::from_utf8(raw)?),
            Type::BYTEA => Self::Blob(raw),
            Type::VOID => Self::Null,
            _ => Self::Other,
        })
    }

    fn from_sql_null(_: &Type) -> std::result::Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// What can be read out of a column.
pub(crate) trait FromSql: Sized {
    fn read(found: Found<'_>) -> Result<Self>;
}

fn odd<T>(wanted: &str, found: Found<'_>) -> Result<T> {
    Err(Error::Odd(format!("{wanted} was expected, and {found:?} found")))
}

impl FromSql for i64 {
    fn read(found: Found<'_>) -> Result<Self> {
        match found {
            Found::Int(number) => Ok(number),
            other => odd("a number", other),
        }
    }
}

impl FromSql for u32 {
    fn read(found: Found<'_>) -> Result<Self> {
        Self::try_from(i64::read(found)?).or_else(|_| odd("a small number", found))
    }
}

impl FromSql for bool {
    fn read(found: Found<'_>) -> Result<Self> {
        Ok(i64::read(found)? != 0)
    }
}

impl FromSql for String {
    fn read(found: Found<'_>) -> Result<Self> {
        match found {
            Found::Text(text) => Ok(text.to_owned()),
            other => odd("a text", other),
        }
    }
}

impl FromSql for Vec<u8> {
    fn read(found: Found<'_>) -> Result<Self> {
        match found {
            Found::Blob(bytes) => Ok(bytes.to_owned()),
            other => odd("bytes", other),
        }
    }
}

impl<const N: usize> FromSql for [u8; N] {
    fn read(found: Found<'_>) -> Result<Self> {
        match found {
            Found::Blob(bytes) => bytes.try_into().or_else(|_| odd("so many bytes", found)),
            other => odd("bytes", other),
        }
    }
}

impl<T: FromSql> FromSql for Option<T> {
    fn read(found: Found<'_>) -> Result<Self> {
        match found {
            Found::Null => Ok(None),
            found => T::read(found).map(Some),
        }
    }
}
