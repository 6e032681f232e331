//! Why a connection failed, in words for people who have never heard of the libraries that it failed in.

use std::error::Error;
use std::io::{self, ErrorKind};

use rustls::CertificateError;

/// What a cause is in words; nothing where it is not one that says by itself what happened.
pub(crate) fn of(cause: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = cause.downcast_ref::<rustls::Error>() {
        return Some(tls(error).to_owned());
    }
    let error = cause.downcast_ref::<io::Error>()?;
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(error) => Some(tls(error).to_owned()),
        None => io(error).map(str::to_owned),
    }
}

fn tls(error: &rustls::Error) -> &'static str {
    let rustls::Error::InvalidCertificate(error) = error else { return "TLS could not be agreed on" };
    match error {
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another name"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its certificate has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet"
        }
        CertificateError::UnknownIssuer => "its certificate is from nobody that this server trusts",
        CertificateError::Revoked => "its certificate was revoked",
        _ => "its certificate is not valid",
    }
}

fn io(error: &io::Error) -> Option<&'static str> {
    Some(match error.kind() {
        ErrorKind::ConnectionRefused => "nothing listens there: the connection was refused",
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => "it can't be reached from this network",
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof => "the connection was cut",
        ErrorKind::TimedOut => "no connection came about in time",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_said_without_numbers_and_names_of_libraries() {
        let said = |error: io::Error| of(&error);
        let refused = said(io::Error::from_raw_os_error(rustix::io::Errno::CONNREFUSED.raw_os_error()));
        assert_eq!(refused.as_deref(), Some("nothing listens there: the connection was refused"));
        let unreachable = said(io::Error::from_raw_os_error(rustix::io::Errno::HOSTUNREACH.raw_os_error()));
        assert_eq!(unreachable.as_deref(), Some("it can't be reached from this network"));
        let wrapped = rustls::Error::InvalidCertificate(CertificateError::Expired);
        assert_eq!(said(io::Error::other(wrapped)).as_deref(), Some("its certificate has expired"));
        assert_eq!(of(&rustls::Error::DecryptError).as_deref(), Some("TLS could not be agreed on"));
        assert_eq!(said(io::Error::other("something else")), None);
    }
}
