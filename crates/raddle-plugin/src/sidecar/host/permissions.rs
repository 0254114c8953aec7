//! `host/request_approval`, and the check of a permission.

use std::fmt::Display;
use std::sync::atomic::Ordering;

use raddle_rpc::{ErrorObject, code};
use rmcp::model::ElicitRequestParams;
use serde_json::{Value, json};

use super::{PluginHost, invalid_params, refused};
use crate::sidecar::manifest::Manifest;

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
            self.note(&format!(
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
            self.note(&format!("permission {permission}: {message}"));
            refused(message)
        };
        let call = call.map_err(|it| not_asked(&it))?;
        let _asking = call.asking.lock().await;
        // Another question for it may have been answered meanwhile.
        if self.is_approved(permission).await? {
            return Ok(json!({ "approved": true }));
        }
        let question = self.question(permission)?;
        let accepted_by = call.questions.accepted_by(&question).await;
        let Some(principal) = accepted_by.map_err(|it| not_asked(&it))? else {
            return Ok(json!({ "approved": false }));
        };
        let (store, hash) = (self.permissions.clone(), self.hash.clone());
        let name = permission.to_owned();
        let is_stopped = self.is_stopped.clone();
        let approve = move || match is_stopped.load(Ordering::Relaxed) {
            true => Ok(false),
            false => store.approve(&hash, &name, principal).map(|()| true),
        };
        match self.on_disk(approve).await? {
            true => Ok(json!({ "approved": true })),
            false => Err(not_asked(&"the plugin is changed, disabled or removed")),
        }
    }

    /// Returns the question for a permission: a form without fields, to accept or to decline.
    fn question(&self, permission: &str) -> Result<ElicitRequestParams, ErrorObject> {
        let Manifest { id, version, .. } = &*self.manifest;
        let message = format!("The plugin {id} {version} asks for the permission {permission}.");
        let question = json!({
            "mode": "form",
            "message": message,
            "requestedSchema": { "type": "object", "properties": {} },
        });
        serde_json::from_value(question)
            .map_err(|error| ErrorObject::new(code::INTERNAL, error.to_string()))
    }

    /// Whether the manifest lists a permission.
    fn is_declared(&self, permission: &str) -> bool {
        self.manifest.permissions.iter().any(|it| it == permission)
    }

    /// Whether the user approved a permission. The file is read each time, because the user may
    /// revoke it.
    async fn is_approved(&self, permission: &str) -> Result<bool, ErrorObject> {
        let (store, hash) = (self.permissions.clone(), self.hash.clone());
        let approved = self.on_disk(move || store.approved(&hash)).await?;
        Ok(approved.contains_key(permission))
    }
}
