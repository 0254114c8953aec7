//! `host/request_approval`, and the check of a permission.

use std::fmt::Display;
use std::sync::Arc;

use raddle_core::{AskElicitation, PluginPermission};
use raddle_rpc::{ErrorObject, code};
use rmcp::model::ElicitRequestParams;
use serde_json::{Value, json};

use super::{PluginHost, invalid_params, refused};
use crate::mcp::question;
use crate::sidecar::manifest::Manifest;
use crate::sidecar::open_calls::OpenCall;
use crate::sidecar::permission_store::ApprovalError;

impl PluginHost {
    /// Asks the user for a permission, in the middle of a call.
    pub(super) async fn request_approval(&self, params: Value) -> Result<Value, ErrorObject> {
        let call = self.calls.find(&params);
        let permission = params["permission"].as_str().map(str::to_owned);
        // They may be long, and the user may take hours.
        drop(params);
        let Some(permission) = permission.as_deref() else {
            let message =
                "`permission` must be a string, as in {\"permission\": \"workspace.read\"}";
            return Err(invalid_params(message));
        };
        if !self.is_declared(permission) {
            self.note_act(&format!(
                "the permission {permission:?} is denied, because `permissions` in plugin.toml \
                 does not list it"
            ));
            return Ok(json!({ "approved": false }));
        }
        if self.is_approved(permission).await? {
            return Ok(json!({ "approved": true }));
        }
        let not_asked = |reason: &dyn Display| {
            let message = format!("the user is not asked: {reason}");
            self.note_act(&format!("permission {permission}: {message}"));
            refused(message)
        };
        let call = call.map_err(|it| not_asked(&it))?;
        let _asking = call.asking.lock().await;
        // Another question for it may have been answered meanwhile.
        if self.is_approved(permission).await? {
            return Ok(json!({ "approved": true }));
        }
        let question = self.question(permission)?;
        let asked = PluginPermission {
            plugin: self.manifest.id.clone(),
            hash: self.hash.clone(),
            name: permission.to_owned(),
        };
        let accepted_by = call.questions.accepted_by(&question, Some(asked)).await;
        let Some(principal) = accepted_by.map_err(|it| not_asked(&it))? else {
            return Ok(json!({ "approved": false }));
        };
        match self.approve(permission, principal).await? {
            true => Ok(json!({ "approved": true })),
            false => Err(not_asked(&"the plugin is changed, disabled or removed")),
        }
    }

    /// Returns the question to the user about a permission.
    fn question(&self, permission: &str) -> Result<ElicitRequestParams, ErrorObject> {
        let Manifest { id, version, .. } = &*self.manifest;
        form(&format!(
            "The plugin {id} {version} asks for the permission {permission}."
        ))
    }

    /// Stores the approval of a permission by this principal, who was asked in a call that has
    /// ended. Returns false if the question was another one, or the plugin has changed since.
    pub(in crate::sidecar) async fn approve_asked(
        &self,
        ask: &AskElicitation,
        by: &str,
    ) -> Result<bool, ErrorObject> {
        let Some(PluginPermission { hash, name, .. }) = &ask.permission else {
            return Ok(false);
        };
        let body = question(&self.question(name)?);
        let is_same = *hash == self.hash && self.is_declared(name);
        match is_same && body.is_ok_and(|it| it == ask.body) {
            true => self.approve(name, by.to_owned()).await,
            false => Ok(false),
        }
    }

    /// Stores the approval of a permission by this principal. Returns false if the plugin is no
    /// longer installed as it was.
    pub(in crate::sidecar) async fn approve(
        &self,
        permission: &str,
        principal: String,
    ) -> Result<bool, ErrorObject> {
        let (store, hash) = (self.permissions.clone(), self.hash.clone());
        let name = permission.to_owned();
        let is_stopped = self.is_stopped.clone();
        let approve = move || match store.approve(&hash, &name, principal, &is_stopped) {
            Err(ApprovalError::Stopped) => Ok(false),
            outcome => outcome.map(|()| true),
        };
        self.on_disk(approve).await
    }

    /// Checks that the user approved a permission, and returns the call that a host call with these
    /// params belongs to. A turn of a thread made it.
    pub(super) async fn permitted(
        &self,
        permission: &str,
        params: &Value,
    ) -> Result<Arc<OpenCall>, ErrorObject> {
        let denied = |why: String| {
            self.note_act(&format!("permission {permission}: {why}"));
            refused(why)
        };
        if !self.is_declared(permission) {
            return Err(denied(format!(
                "`permissions` in plugin.toml does not list {permission:?}"
            )));
        }
        if !self.is_approved(permission).await? {
            return Err(denied(format!(
                "the user has not approved {permission:?}; ask with host/request_approval"
            )));
        }
        let call = self.calls.find(params);
        let call = call.map_err(|it| denied(it.to_string()))?;
        match call.has_thread() {
            true => Ok(call),
            false => Err(denied(
                "the open call is one that no turn of a thread made".to_owned(),
            )),
        }
    }

    /// Returns the approved permissions for hosts. Without the file there are none.
    pub(in crate::sidecar) async fn approved_network(&self) -> Vec<String> {
        if self.manifest.network_permissions().next().is_none() {
            return Vec::new();
        }
        let (store, hash) = (self.permissions.clone(), self.hash.clone());
        let approved = self.on_disk(move || store.approved(&hash)).await;
        let approved = approved.unwrap_or_default();
        let listed = self.manifest.network_permissions();
        let listed = listed.filter(|it| approved.contains_key(*it));
        listed.cloned().collect()
    }

    /// Whether the manifest lists a permission.
    fn is_declared(&self, permission: &str) -> bool {
        self.manifest.permissions.iter().any(|it| it == permission)
    }

    /// Whether the user approved a permission. The file is read each time, because the user may
    /// revoke it.
    pub(super) async fn is_approved(&self, permission: &str) -> Result<bool, ErrorObject> {
        let (store, hash) = (self.permissions.clone(), self.hash.clone());
        let approved = self.on_disk(move || store.approved(&hash)).await?;
        Ok(approved.contains_key(permission))
    }
}

/// Returns a question to accept or to decline: a form without fields.
pub(super) fn form(message: &str) -> Result<ElicitRequestParams, ErrorObject> {
    let question = json!({
        "mode": "form",
        "message": message,
        "requestedSchema": { "type": "object", "properties": {} },
    });
    serde_json::from_value(question)
        .map_err(|error| ErrorObject::new(code::INTERNAL, error.to_string()))
}
