//! Password hashes: argon2id, in memory that is used again. Given back to the allocator, the 19 MiB of each hashing
//! would stay with whichever thread it ran on, and after some sign-ins hold hundreds of MiB.

use std::sync::{Mutex, PoisonError};

use argon2::password_hash::rand_core::OsRng;
use argon2::password_hash::{
    self, Decimal, Ident, Output, ParamsString, PasswordHash, PasswordHasher, PasswordVerifier, Salt, SaltString,
};
use argon2::{Algorithm, Argon2, Block, Params, Version};

use crate::error::AppError;

/// What finished hashings leave for the next ones: as many as ever ran at one time.
static MEMORY: Mutex<Vec<Vec<Block>>> = Mutex::new(Vec::new());

/// Hashes a password with argon2id. Takes tens of milliseconds and 19 MiB: never on an async thread.
pub fn hash_password(password: &str) -> Result<String, AppError> {
    let salt = SaltString::generate(&mut OsRng);
    let hash = Frugal.hash_password(password.as_bytes(), &salt);
    hash.map(|hash| hash.to_string()).map_err(|error| AppError::Internal(format!("hashing failed: {error}")))
}

/// Whether the password fits the hash. As slow as [`hash_password`].
pub fn verify_password(password: &str, hash: &str) -> bool {
    let Ok(hash) = PasswordHash::new(hash) else { return false };
    Frugal.verify_password(password.as_bytes(), &hash).is_ok()
}

/// [`Argon2`] that keeps its memory.
struct Frugal;

impl PasswordHasher for Frugal {
    type Params = Params;

    fn hash_password_customized<'a>(
        &self,
        password: &[u8],
        algorithm: Option<Ident<'a>>,
        version: Option<Decimal>,
        params: Params,
        salt: impl Into<Salt<'a>>,
    ) -> password_hash::Result<PasswordHash<'a>> {
        let algorithm = algorithm.map(Algorithm::try_from).transpose()?.unwrap_or_default();
        let version = version.map(Version::try_from).transpose()?.unwrap_or_default();
        let salt = salt.into();
        let mut salt_bytes = [0; Salt::MAX_LENGTH];
        let salt_bytes = salt.decode_b64(&mut salt_bytes)?;
        let length = params.output_len().unwrap_or(Params::DEFAULT_OUTPUT_LEN);
        let text = ParamsString::try_from(&params)?;
        let argon2 = Argon2::new(algorithm, version, params);
        let output = Output::init_with(length, |out| Ok(fill(&argon2, password, salt_bytes, out)?))?;
        let (algorithm, version) = (algorithm.ident(), Some(version.into()));
        Ok(PasswordHash { algorithm, version, params: text, salt: Some(salt), hash: Some(output) })
    }
}

fn fill(argon2: &Argon2<'_>, password: &[u8], salt: &[u8], out: &mut [u8]) -> argon2::Result<()> {
    let kept = || MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    let mut memory = kept().pop().unwrap_or_default();
    // What is in it does not matter: every block is written before it is read.
    memory.resize(argon2.params().block_count(), Block::default());
    let result = argon2.hash_password_into_with_memory(password, salt, out, &mut memory);
    kept().push(memory);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_argon2_whatever_was_in_the_memory() {
        for password in ["first", "second"] {
            let hash = hash_password(password).unwrap();
            assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
            let parsed = PasswordHash::new(&hash).unwrap();
            assert!(Argon2::default().verify_password(password.as_bytes(), &parsed).is_ok());
            let theirs = Argon2::default().hash_password(password.as_bytes(), parsed.salt.unwrap()).unwrap();
            assert!(verify_password(password, &theirs.to_string()));
            assert!(!verify_password("third", &hash));
        }
    }
}
