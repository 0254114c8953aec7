//! Tokens of users who logged in to MCP servers, in a file of the home that only they can read.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::path::Path;

use data_encoding::HEXLOWER;
use raddle_config::PrivateFile;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::error::OauthError;
use super::grant::OauthClient;

/// The tokens for one server, and the client and endpoint that renew them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServerCredential {
    /// The one address that the tokens are sent to.
    pub(super) url: String,
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    /// Expiry of the access token, in seconds since 1970.
    pub(super) expires_at: Option<u64>,
    /// The one address that renews the tokens.
    pub(super) token_url: String,
    pub(super) resource: Option<String>,
    pub(super) client: OauthClient,
}

impl fmt::Debug for ServerCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerCredential")
    }
}

/// The file of the tokens. Cheap to clone; each method blocks on the disk.
#[derive(Clone, Debug)]
pub(super) struct TokenStore {
    file: PrivateFile,
}

#[derive(Default, Serialize, Deserialize)]
struct TokenFile {
    servers: BTreeMap<String, ServerCredential>,
}

impl TokenFile {
    fn get(&self, name: &str, url: &str) -> Option<&ServerCredential> {
        self.servers.get(name).filter(|it| it.url == url)
    }

    /// Returns whether there was a credential, for any address.
    fn set(&mut self, name: &str, credential: Option<ServerCredential>) -> bool {
        let before = match credential {
            Some(credential) => self.servers.insert(name.to_owned(), credential),
            None => self.servers.remove(name),
        };
        before.is_some()
    }
}

impl TokenStore {
    pub(super) fn of(home: &Path) -> Self {
        Self {
            file: PrivateFile::new(home.join("mcp-credentials.json"), "raddle mcp login"),
        }
    }

    /// Returns the credential of a server, if its address is unchanged.
    pub(super) fn get(
        &self,
        name: &str,
        url: &str,
    ) -> Result<Option<ServerCredential>, OauthError> {
        Ok(self.read()?.get(name, url).cloned())
    }

    /// Stores the credential of a server, or removes that of any address. Returns whether there was
    /// one.
    pub(super) fn set(
        &self,
        name: &str,
        credential: Option<ServerCredential>,
    ) -> Result<bool, OauthError> {
        // The folder of the lock may not exist yet.
        if credential.is_none() && !self.read()?.servers.contains_key(name) {
            return Ok(false);
        }
        let _lock = self.file.lock()?;
        let mut file = self.read()?;
        let was_there = file.set(name, credential);
        self.file.write(&file)?;
        Ok(was_there)
    }

    /// Replaces or removes a credential if it is still stored. Returns the credential that is
    /// stored now.
    pub(super) fn replace(
        &self,
        name: &str,
        old: &ServerCredential,
        new: Option<ServerCredential>,
    ) -> Result<Option<ServerCredential>, OauthError> {
        let _lock = self.file.lock()?;
        let mut file = self.read()?;
        match file.get(name, &old.url) {
            Some(stored) if stored == old => {
                file.set(name, new.clone());
                self.file.write(&file)?;
                Ok(new)
            }
            stored => Ok(stored.cloned()),
        }
    }

    /// Locks out others that renew the tokens of a server, in any process, until it is dropped.
    /// `None` while another one does.
    pub(super) fn renewal_lock(&self, name: &str) -> Result<Option<File>, OauthError> {
        let digest = HEXLOWER.encode(&Sha256::digest(name)[..8]);
        Ok(self.file.try_lock(&format!("{digest}.renewing"))?)
    }

    fn read(&self) -> Result<TokenFile, OauthError> {
        Ok(self.file.read()?)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use std::os::unix::fs::PermissionsExt as _;

    use super::super::grant::ClientAuth;
    use super::*;

    fn credential(access: &str) -> ServerCredential {
        ServerCredential {
            url: "https://a.org/mcp".to_owned(),
            access: access.to_owned(),
            refresh: None,
            expires_at: None,
            token_url: "https://b.org/token".to_owned(),
            resource: None,
            client: OauthClient {
                id: "me".to_owned(),
                secret: None,
                auth: ClientAuth::Public,
            },
        }
    }

    #[test]
    fn tokens_are_bound_to_their_address() {
        let home = tempfile::tempdir().expect("a home");
        let store = TokenStore::of(home.path());
        let get = |url| store.get("a/b", url).expect("a file");
        assert_eq!(get("https://a.org/mcp"), None);
        assert!(!store.set("a/b", None).expect("nothing to remove"));
        assert!(
            !store
                .set("a/b", Some(credential("sekret")))
                .expect("stored")
        );
        assert_eq!(get("https://a.org/mcp"), Some(credential("sekret")));
        assert_eq!(get("https://evil.org/mcp"), None);
        let mode = fs::metadata(store.file.path())
            .expect("a file")
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        assert!(!format!("{:?}", credential("sekret")).contains("sekret"));
        let other = store.replace("a/b", &credential("stale"), None);
        assert_eq!(other.expect("a file"), Some(credential("sekret")));
        let new = store.replace("a/b", &credential("sekret"), Some(credential("new")));
        assert_eq!(new.expect("a file"), Some(credential("new")));
        assert!(store.set("a/b", None).expect("removed"));
        assert_eq!(get("https://a.org/mcp"), None);
    }

    #[test]
    fn one_renewal_of_a_server_runs_at_a_time() {
        let home = tempfile::tempdir().expect("a home");
        let store = TokenStore::of(home.path());
        let lock = store.renewal_lock("a").expect("a lock");
        assert!(lock.is_some());
        assert!(store.renewal_lock("a").expect("a lock").is_none());
        assert!(store.renewal_lock("b").expect("a lock").is_some());
        drop(lock);
        assert!(store.renewal_lock("a").expect("a lock").is_some());
    }
}
