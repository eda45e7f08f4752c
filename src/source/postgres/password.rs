use std::fmt;
use std::sync::Arc;

use secrecy::SecretString;

use super::SourceError;

/// The role's password, or where to read it: it is looked up anew at every login, so that one
/// that was changed is used without a restart.
#[derive(Clone)]
pub struct Password(Arc<dyn Fn() -> Result<SecretString, String> + Send + Sync>);

impl Password {
    /// One that stays as it is.
    pub fn fixed(password: SecretString) -> Self {
        Self(Arc::new(move || Ok(password.clone())))
    }

    /// One that `read` looks up. Its error says which place could not be read and what to do
    /// about it; neither may hold a secret.
    pub fn read_by(
        read: impl Fn() -> Result<SecretString, String> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(read))
    }

    /// The password as it is now.
    ///
    /// # Errors
    /// When the place it is kept in cannot be read (class retry: a secret that is being
    /// replaced can be away for a moment).
    pub fn read(&self) -> Result<SecretString, SourceError> {
        (self.0)().map_err(|why| SourceError::NotYet(format!("database.password: {why}")))
    }
}

/// Shows nothing of it.
impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}
