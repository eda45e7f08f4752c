use std::path::{Path, PathBuf};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::SourceError;

/// Our own certificate and its key, with which the role can log in (method `cert`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// PEM file with the certificate and what leads to its authority (`database.sslcert`).
    pub certificate: PathBuf,
    /// Its key: PEM, or DER as the JDBC driver wants it (`database.sslkey`).
    pub key: PathBuf,
}

impl ClientCertificate {
    /// Reads both files.
    ///
    /// # Errors
    /// When a file cannot be read, or holds something else; a key that is encrypted or lies in
    /// a PKCS#12 file is refused with the command that gets it out.
    pub(super) fn read(
        &self,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), SourceError> {
        let chain: Vec<_> =
            CertificateDer::pem_slice_iter(&contents("database.sslcert", &self.certificate)?)
                .collect::<Result<_, _>>()
                .map_err(|error| {
                    refusal(
                        "database.sslcert",
                        &self.certificate,
                        &format!("cannot be read: {error}"),
                    )
                })?;
        if chain.is_empty() {
            return Err(refusal(
                "database.sslcert",
                &self.certificate,
                "holds no certificate in PEM form",
            ));
        }
        let key = contents("database.sslkey", &self.key)?;
        let key = private_key(&key, &self.key.display().to_string())
            .map_err(|why| refusal("database.sslkey", &self.key, &why))?;
        Ok((chain, key))
    }
}

fn contents(key: &'static str, path: &Path) -> Result<Vec<u8>, SourceError> {
    std::fs::read(path).map_err(|error| refusal(key, path, &format!("cannot be read: {error}")))
}

fn refusal(key: &'static str, path: &Path, why: &str) -> SourceError {
    SourceError::Tls(format!("{key}: {} {why}", path.display()))
}

/// A key in PEM (PKCS#8, PKCS#1 or SEC1) or DER; else what to do with `file`.
fn private_key(content: &[u8], file: &str) -> Result<PrivateKeyDer<'static>, String> {
    let holds = |mark: &str| {
        content
            .windows(mark.len())
            .any(|part| part == mark.as_bytes())
    };
    if holds("ENCRYPTED") && holds("-----BEGIN") {
        return Err(format!(
            "is encrypted; decrypt it with: openssl pkey -in {file} -out {file}.pem"
        ));
    }
    if holds("-----BEGIN") {
        return PrivateKeyDer::from_pem_slice(content)
            .map_err(|error| format!("holds no private key: {error}"));
    }
    if is_pkcs12(content) {
        return Err(format!(
            "is a PKCS#12 file; take key and certificate out with: openssl pkcs12 -in {file} -nodes -out {file}.pem, and name that file in database.sslkey and database.sslcert"
        ));
    }
    PrivateKeyDer::try_from(content.to_vec()).map_err(|_| {
        format!(
            "is neither a PEM file nor an unencrypted key in DER form; convert it with: openssl pkcs8 -inform DER -in {file} -out {file}.pem"
        )
    })
}

/// Whether the bytes begin as a PFX does: a sequence whose first element is the version 3
/// (RFC 7292, section 4).
fn is_pkcs12(content: &[u8]) -> bool {
    let inside = match content {
        [0x30, 0x82, _, _, inside @ ..] | [0x30, 0x81, _, inside @ ..] => inside,
        _ => return false,
    };
    inside.starts_with(&[0x02, 0x01, 0x03])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(content: &[u8]) -> String {
        private_key(content, "client.key").unwrap_err()
    }

    #[test]
    fn what_cannot_be_used_comes_with_the_command_that_mends_it() {
        for encrypted in [
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END RSA PRIVATE KEY-----\n",
        ] {
            let said = refused(encrypted.as_bytes());
            assert!(said.contains("openssl pkey -in client.key"), "{said}");
        }
        let said = refused(&[0x30, 0x82, 0x09, 0x00, 0x02, 0x01, 0x03, 0x30]);
        assert!(said.contains("openssl pkcs12 -in client.key"), "{said}");
        let said = refused(b"no key at all");
        assert!(said.contains("openssl pkcs8"), "{said}");
        let said = refused(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
        assert!(said.contains("holds no private key"), "{said}");
    }
}
