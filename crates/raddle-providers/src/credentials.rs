//! Credentials of signed-in users, in a file that only they can read.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::path::Path;

use raddle_config::{KeySource, OAuth, PrivateFile, PrivateFileError, Provider};
use serde::{Deserialize, Serialize};
use tokio::task::JoinError;

/// The credential stored for a provider.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "type")]
pub(crate) enum StoredCredential {
    Key {
        key: String,
    },
    /// OAuth tokens, and their expiry in seconds since 1970.
    #[serde(rename_all = "camelCase")]
    Tokens {
        access: String,
        refresh: Option<String>,
        expires_at: Option<u64>,
        giver: Option<TokenIssuer>,
    },
}

/// The issuer of tokens and the client they were issued to. Tokens are sent to no other issuer for
/// renewal.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TokenIssuer {
    token_url: String,
    client_id: String,
}

impl TokenIssuer {
    pub(crate) fn of(oauth: &OAuth) -> Self {
        Self {
            token_url: oauth.token_url.clone(),
            client_id: oauth.client_id.clone(),
        }
    }
}

impl StoredCredential {
    /// The secret that authenticates calls.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Key { key: text } | Self::Tokens { access: text, .. } => text,
        }
    }

    /// Whether it matches the provider's current sign-in.
    fn is_of(&self, provider: &Provider) -> bool {
        let Self::Tokens { giver, .. } = self else {
            return true;
        };
        let oauth = match &provider.key {
            KeySource::Stored(sign_in) => sign_in.oauth.as_ref(),
            _ => None,
        };
        giver.is_some() && *giver == oauth.map(TokenIssuer::of)
    }
}

impl fmt::Debug for StoredCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoredCredential")
    }
}

/// Reason why the credentials cannot be read or stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CredentialError {
    /// The file cannot be used.
    #[error(transparent)]
    File(#[from] PrivateFileError),
    /// The thread that read or wrote panicked.
    #[error(transparent)]
    Panicked(#[from] JoinError),
}

/// The credentials file. Cheap to clone; each method blocks on the disk.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    file: PrivateFile,
}

#[derive(Default, Serialize, Deserialize)]
struct CredentialFile {
    providers: BTreeMap<String, CredentialEntry>,
}

#[derive(Serialize, Deserialize)]
struct CredentialEntry {
    /// The one address that it is sent to.
    base_url: String,
    #[serde(rename = "kept")]
    credential: StoredCredential,
}

impl CredentialFile {
    fn credential(&self, provider: &Provider) -> Option<&StoredCredential> {
        let entry = self.providers.get(&provider.name);
        let entry =
            entry.filter(|it| it.base_url == provider.base_url && it.credential.is_of(provider));
        entry.map(|it| &it.credential)
    }

    /// Returns whether the provider had a credential, for any address.
    fn set(&mut self, provider: &Provider, credential: Option<StoredCredential>) -> bool {
        let entry = credential.map(|credential| CredentialEntry {
            base_url: provider.base_url.clone(),
            credential,
        });
        let before = match entry {
            Some(entry) => self.providers.insert(provider.name.clone(), entry),
            None => self.providers.remove(&provider.name),
        };
        before.is_some()
    }
}

impl Credentials {
    pub(crate) fn of(home: &Path) -> Self {
        Self {
            file: PrivateFile::new(home.join("credentials.json"), "raddle login"),
        }
    }

    /// Returns the credential of a provider, if its address and its issuer are unchanged.
    pub(crate) fn get(
        &self,
        provider: &Provider,
    ) -> Result<Option<StoredCredential>, CredentialError> {
        Ok(self.read()?.credential(provider).cloned())
    }

    /// Stores the credential of a provider, or removes that of any address and issuer.
    /// Returns whether there was one.
    pub(crate) fn set(
        &self,
        provider: &Provider,
        credential: Option<StoredCredential>,
    ) -> Result<bool, CredentialError> {
        // The folder of the lock may not exist yet.
        if credential.is_none() && !self.read()?.providers.contains_key(&provider.name) {
            return Ok(false);
        }
        let _lock = self.file.lock()?;
        let mut file = self.read()?;
        let was_there = file.set(provider, credential);
        self.file.write(&file)?;
        Ok(was_there)
    }

    /// Replaces a credential if it is still stored. Returns the credential that is stored now.
    pub(crate) fn replace(
        &self,
        provider: &Provider,
        old: &StoredCredential,
        new: StoredCredential,
    ) -> Result<Option<StoredCredential>, CredentialError> {
        let _lock = self.file.lock()?;
        let mut file = self.read()?;
        match file.credential(provider) {
            Some(stored) if stored == old => {
                file.set(provider, Some(new.clone()));
                self.file.write(&file)?;
                Ok(Some(new))
            }
            stored => Ok(stored.cloned()),
        }
    }

    /// Locks out other processes that renew tokens, until it is dropped. `None` while another one
    /// does.
    pub(crate) fn renewing(&self) -> Result<Option<File>, CredentialError> {
        Ok(self.file.try_lock("renewing")?)
    }

    fn read(&self) -> Result<CredentialFile, CredentialError> {
        Ok(self.file.read()?)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use std::os::unix::fs::PermissionsExt;

    use raddle_config::SignIn;

    use super::*;

    #[test]
    fn a_credential_is_bound_to_its_address_and_owner() {
        let home = tempfile::tempdir().expect("a home");
        let credentials = Credentials::of(home.path());
        let provider = Provider {
            name: "a".to_owned(),
            base_url: "https://a".to_owned(),
            ..Provider::default()
        };
        let elsewhere = Provider {
            base_url: "https://b".to_owned(),
            ..provider.clone()
        };
        let key = StoredCredential::Key {
            key: "sekret".to_owned(),
        };
        let get = |provider| credentials.get(provider).expect("a file");
        let set = |credential| credentials.set(&provider, credential).expect("stored");
        assert_eq!(get(&provider), None);
        set(Some(key.clone()));
        assert_eq!(get(&provider), Some(key.clone()));
        assert_eq!(get(&elsewhere), None);
        assert!(credentials.set(&elsewhere, None).expect("removed"));
        assert_eq!(get(&provider), None);
        assert!(!credentials.set(&provider, None).expect("nothing to remove"));
        set(Some(key.clone()));
        let mode = fs::metadata(credentials.file.path())
            .expect("a file")
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        assert!(!format!("{key:?}").contains("sekret"));
        set(None);
        assert_eq!(get(&provider), None);
        fs::write(credentials.file.path(), "sekret").expect("a file");
        let error = credentials.get(&provider).expect_err("no JSON");
        assert!(!format!("{error:?} {error}").contains("sekret"), "{error}");
    }

    #[test]
    fn tokens_are_bound_to_their_issuer() {
        let provider = |token_url: &str, client_id: &str| Provider {
            key: KeySource::Stored(SignIn {
                oauth: Some(OAuth {
                    token_url: token_url.to_owned(),
                    client_id: client_id.to_owned(),
                    ..OAuth::default()
                }),
                ..SignIn::default()
            }),
            ..Provider::default()
        };
        let giver = TokenIssuer {
            token_url: "https://a/token".to_owned(),
            client_id: "me".to_owned(),
        };
        let tokens = |giver| StoredCredential::Tokens {
            access: "access".to_owned(),
            refresh: Some("refresh".to_owned()),
            expires_at: None,
            giver,
        };
        let home = tempfile::tempdir().expect("a home");
        let credentials = Credentials::of(home.path());
        for (giver, provider, is_there) in [
            (Some(giver.clone()), provider("https://a/token", "me"), true),
            (
                Some(giver.clone()),
                provider("https://b/token", "me"),
                false,
            ),
            (
                Some(giver.clone()),
                provider("https://a/token", "you"),
                false,
            ),
            (Some(giver), Provider::default(), false),
            (None, provider("https://a/token", "me"), false),
            (None, Provider::default(), false),
        ] {
            let tokens = tokens(giver);
            let stored = credentials.set(&provider, Some(tokens.clone()));
            stored.expect("stored");
            let stored = credentials.get(&provider).expect("a file");
            assert_eq!(stored, is_there.then_some(tokens), "{provider:?}");
        }
    }
}
