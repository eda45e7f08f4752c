use std::sync::Arc;
use std::time::Duration;

use postgres_protocol::authentication::sasl::ChannelBinding;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use sha2::{Digest, Sha256, Sha384, Sha512};
use x509_cert::der::Decode;
use x509_cert::der::oid::db::rfc5912::{
    ECDSA_WITH_SHA_256, ECDSA_WITH_SHA_384, SHA_1_WITH_RSA_ENCRYPTION, SHA_256_WITH_RSA_ENCRYPTION,
    SHA_384_WITH_RSA_ENCRYPTION, SHA_512_WITH_RSA_ENCRYPTION,
};

use super::{Authorities, SourceError, SslMode, TlsOptions};

/// The rustls settings that `database.sslmode` asks for.
///
/// # Errors
/// When a certificate file cannot be read or holds something else, or the system has no
/// authorities to trust.
pub(super) fn client_config(options: &TlsOptions) -> Result<Arc<ClientConfig>, SourceError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| SourceError::Tls(format!("TLS cannot be set up: {error}")))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(ServerCheck::new(options, provider)?));
    let config = match &options.client {
        Some(client) if options.mode != SslMode::Disable => {
            let (chain, key) = client.read()?;
            builder.with_client_auth_cert(chain, key).map_err(|error| {
                SourceError::Tls(format!(
                    "database.sslcert {} and database.sslkey {} cannot be used together: {error}",
                    client.certificate.display(),
                    client.key.display()
                ))
            })?
        }
        _ => builder.with_no_client_auth(),
    };
    Ok(Arc::new(config))
}

/// The certificates of the authorities to trust.
fn authorities(options: &TlsOptions) -> Result<Vec<CertificateDer<'static>>, SourceError> {
    let Authorities::File(path) = &options.authorities else {
        let found = rustls_native_certs::load_native_certs().certs;
        if found.is_empty() {
            return Err(SourceError::Tls(
                "database.sslmode asks to check the server's certificate, but this system has no certificate authorities; install ca-certificates or set database.sslrootcert".to_owned(),
            ));
        }
        return Ok(found);
    };
    let found = CertificateDer::pem_file_iter(path)
        .and_then(|found| found.collect::<Result<Vec<_>, _>>())
        .map_err(|error| format!("cannot be read: {error}"));
    match found {
        Ok(found) if found.is_empty() => Err("holds no certificate".to_owned()),
        found => found,
    }
    .map_err(|why| {
        SourceError::Tls(format!(
            "database.sslrootcert: {} {why}; give a PEM file with the certificates of the authorities to trust",
            path.display()
        ))
    })
}

/// What rustls checks with. One unusable certificate among the system's is no reason to stop.
fn verifier(
    authorities: &[CertificateDer<'static>],
    provider: Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, SourceError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(authorities.iter().cloned());
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| {
            SourceError::Tls(format!(
                "the certificates of database.sslrootcert cannot be used: {error}"
            ))
        })
}

/// Channel binding data for SCRAM-SHA-256-PLUS: the hash of the server's certificate
/// (`tls-server-end-point`, RFC 5929 section 4.1).
///
/// `None` when the certificate's signature algorithm has no single hash (Ed25519 …); then
/// plain SCRAM-SHA-256 is used.
pub(super) fn channel_binding(certificate: &CertificateDer<'_>) -> Option<ChannelBinding> {
    let algorithm = x509_cert::Certificate::from_der(certificate)
        .ok()?
        .signature_algorithm
        .oid;
    let digest = match algorithm {
        // RFC 5929: where the certificate is signed with MD5 or SHA-1, SHA-256 is used instead.
        SHA_1_WITH_RSA_ENCRYPTION | SHA_256_WITH_RSA_ENCRYPTION | ECDSA_WITH_SHA_256 => {
            Sha256::digest(certificate).to_vec()
        }
        SHA_384_WITH_RSA_ENCRYPTION | ECDSA_WITH_SHA_384 => Sha384::digest(certificate).to_vec(),
        SHA_512_WITH_RSA_ENCRYPTION => Sha512::digest(certificate).to_vec(),
        _ => return None,
    };
    Some(ChannelBinding::tls_server_end_point(digest))
}

/// How much of the server's certificate is checked. The handshake's signatures always are.
#[derive(Debug)]
struct ServerCheck {
    provider: Arc<CryptoProvider>,
    /// Checks that an authority we trust signed it; absent where nobody asks who answers.
    authority: Option<Arc<WebPkiServerVerifier>>,
    /// The certificates of `database.sslrootcert`.
    listed: Vec<CertificateDer<'static>>,
    /// Whether it has to be for the host we meant.
    name: bool,
}

impl ServerCheck {
    /// What the modes mean in libpq (PostgreSQL documentation, libpq, "Protection Provided in
    /// Different Modes"): require checks the authority where one is given.
    fn new(options: &TlsOptions, provider: Arc<CryptoProvider>) -> Result<Self, SourceError> {
        let checks_authority = match options.mode {
            SslMode::Disable | SslMode::Allow | SslMode::Prefer => false,
            SslMode::Require => matches!(options.authorities, Authorities::File(_)),
            SslMode::VerifyCa | SslMode::VerifyFull => true,
        };
        let mut check = Self {
            provider: Arc::clone(&provider),
            authority: None,
            listed: Vec::new(),
            name: options.mode == SslMode::VerifyFull,
        };
        if checks_authority {
            check.listed = authorities(options)?;
            check.authority = Some(verifier(&check.listed, provider)?);
        }
        Ok(check)
    }

    /// A server's own certificate in the file is trusted, as by libpq: that is how self-signed
    /// ones are used (PostgreSQL documentation, "Creating Certificates"). webpki takes it for
    /// an authority, and no authority for a server.
    fn is_listed(&self, certificate: &CertificateDer<'_>, now: UnixTime) -> bool {
        self.listed.iter().any(|listed| listed == certificate) && is_valid_at(certificate, now)
    }
}

/// Whether the certificate's time has come and is not over.
fn is_valid_at(certificate: &CertificateDer<'_>, now: UnixTime) -> bool {
    let Ok(parsed) = x509_cert::Certificate::from_der(certificate) else {
        return false;
    };
    let validity = parsed.tbs_certificate.validity;
    let now = Duration::from_secs(now.as_secs());
    (validity.not_before.to_unix_duration()..=validity.not_after.to_unix_duration()).contains(&now)
}

impl ServerCertVerifier for ServerCheck {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(authority) = &self.authority else {
            return Ok(ServerCertVerified::assertion());
        };
        let mut outcome = authority.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        if outcome.is_err() && self.is_listed(end_entity, now) {
            outcome = ParsedCertificate::try_from(end_entity)
                .and_then(|certificate| verify_server_name(&certificate, server_name))
                .map(|()| ServerCertVerified::assertion());
        }
        match outcome {
            // The name is looked at last, so everything else was right.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.name => Ok(ServerCertVerified::assertion()),
            outcome => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
