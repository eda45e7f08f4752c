use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{self, ChannelBinding, ScramSha256};
use secrecy::{ExposeSecret, SecretString};

use super::SourceError;

const SCRAM: &str = sasl::SCRAM_SHA_256;
const SCRAM_PLUS: &str = sasl::SCRAM_SHA_256_PLUS;

/// A SCRAM exchange under way (RFC 5802, RFC 7677): two messages of ours, two of the server's.
pub(super) struct Scram {
    exchange: ScramSha256,
    mechanism: &'static str,
}

impl Scram {
    /// Chooses the strongest mechanism both sides can do. `binding` is there when the
    /// connection is encrypted and the server's certificate can be bound to.
    ///
    /// # Errors
    /// When the server offers neither SCRAM mechanism.
    pub(super) fn begin(
        offered: &[String],
        password: &SecretString,
        binding: Option<ChannelBinding>,
    ) -> Result<Self, SourceError> {
        let offers = |mechanism: &str| offered.iter().any(|name| name == mechanism);
        let (mechanism, binding) = match binding {
            Some(binding) if offers(SCRAM_PLUS) => (SCRAM_PLUS, binding),
            // Tells the server that we could have bound but saw no offer of it, so that it
            // notices when someone in the middle took the offer away.
            Some(_) if offers(SCRAM) => (SCRAM, ChannelBinding::unrequested()),
            None if offers(SCRAM) => (SCRAM, ChannelBinding::unsupported()),
            _ => {
                return Err(SourceError::Login(format!(
                    "the server offers the login methods {}, and outboxd can do SCRAM-SHA-256 and SCRAM-SHA-256-PLUS; change the method in the server's pg_hba.conf",
                    offered.join(", ")
                )));
            }
        };
        Ok(Self {
            exchange: ScramSha256::new(password.expose_secret().as_bytes(), binding),
            mechanism,
        })
    }

    /// The mechanism's name, for the initial response.
    pub(super) fn mechanism(&self) -> &'static str {
        self.mechanism
    }

    /// What to send next.
    pub(super) fn message(&self) -> &[u8] {
        self.exchange.message()
    }

    /// Takes the server's challenge; then [`Self::message`] answers it.
    pub(super) fn challenge(&mut self, data: &[u8]) -> Result<(), SourceError> {
        self.exchange.update(data).map_err(broken)
    }

    /// Takes the server's last word, which proves that it knows the password too.
    pub(super) fn finish(&mut self, data: &[u8]) -> Result<(), SourceError> {
        self.exchange.finish(data).map_err(broken)
    }
}

/// The answer to AuthenticationMD5Password (PostgreSQL documentation, "Message Flow").
pub(super) fn md5(user: &str, password: &SecretString, salt: [u8; 4]) -> SecretString {
    md5_hash(user.as_bytes(), password.expose_secret().as_bytes(), salt).into()
}

fn broken(error: std::io::Error) -> SourceError {
    SourceError::Login(format!(
        "the SCRAM login failed: {error}; check that database.hostname names the right server"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(offered: &[&str], binding: Option<ChannelBinding>) -> Result<Scram, SourceError> {
        let offered: Vec<String> = offered.iter().map(|name| (*name).to_owned()).collect();
        Scram::begin(&offered, &SecretString::from("pw"), binding)
    }

    #[test]
    fn binds_to_the_channel_whenever_both_sides_can() {
        let binding = || Some(ChannelBinding::tls_server_end_point(vec![1, 2, 3]));
        let plus = begin(&[SCRAM_PLUS, SCRAM], binding()).unwrap();
        assert_eq!(plus.mechanism(), SCRAM_PLUS);
        assert!(plus.message().starts_with(b"p=tls-server-end-point,,"));
        let not_offered = begin(&[SCRAM], binding()).unwrap();
        assert!(not_offered.message().starts_with(b"y,,"));
        let in_the_clear = begin(&[SCRAM], None).unwrap();
        assert!(in_the_clear.message().starts_with(b"n,,"));
    }

    #[test]
    fn other_methods_are_refused_by_name() {
        let error = begin(&["OAUTHBEARER"], None).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("OAUTHBEARER"), "{error}");
    }
}
