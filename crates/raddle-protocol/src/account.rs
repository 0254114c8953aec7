//! The account that the server uses at model providers: reading it, signing in and signing out.
//! Most variants belong to one vendor and exist so that its clients work unchanged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `account/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetAccountParams {
    /// Renews the stored token before responding. No effect when the client supplies the tokens
    /// itself.
    #[serde(default, deserialize_with = "null_as_default")]
    pub refresh_token: bool,
}

/// Result of `account/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetAccountResponse {
    /// Whether the model provider requires an OpenAI sign-in. If false, clients skip their login
    /// screen.
    pub requires_openai_auth: bool,
    /// The signed-in account; null when there is none.
    pub account: Option<Account>,
    /// Routing to the vendor's backend of this workspace; null for other accounts.
    #[schemars(extend("x-experimental" = true))]
    pub workspace_routing: Option<WorkspaceRouting>,
}

/// Routing to the vendor's backend of a workspace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceRouting {
    /// Region in which the workspace's data must stay.
    pub account_routing_override: AccountRoutingOverride,
    /// Scheme, host and port of the backend.
    pub backend_origin: String,
    /// Account id of the workspace.
    pub chatgpt_account_id: String,
}

open_enum! {
    /// Region in which a workspace's data must stay.
    pub enum AccountRoutingOverride {
        /// Any region is allowed.
        NoConstraint = "NO_CONSTRAINT",
        /// Only the region `us`.
        Us = "us",
        /// Only the region `us_cr`.
        UsCr = "us_cr",
    }
}

tagged! {
    /// Params of `account/login/start`, distinguished by the sign-in method.
    pub enum LoginAccountParams by "type" {
        /// With an API key; works with any provider.
        ApiKey(ApiKeyLoginAccountParams) = "apiKey",
        /// Through ChatGPT in a browser on this machine.
        Chatgpt(ChatgptLoginAccountParams) = "chatgpt",
        /// Through ChatGPT with a code typed in on any device.
        ChatgptDeviceCode = "chatgptDeviceCode",
        /// With ChatGPT tokens that the client holds and renews. Unstable.
        ChatgptAuthTokens(ChatgptAuthTokensLoginAccountParams) = "chatgptAuthTokens",
        /// With an Amazon Bedrock API key. Unstable.
        AmazonBedrock(AmazonBedrockLoginAccountParams) = "amazonBedrock",
        /// With AWS access keys for Amazon Bedrock. Unstable.
        AmazonBedrockAccessKeys(AmazonBedrockAccessKeysLoginAccountParams) = "amazonBedrockAccessKeys",
    }
}

/// Sign in with an API key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyLoginAccountParams {
    /// The API key; the server stores it.
    pub api_key: String,
    /// The provider of the key; null means the configured one. Raddle extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_provider: Option<String>,
}

/// Sign in through ChatGPT in a browser.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatgptLoginAccountParams {
    /// Brand that the sign-in pages show; null means the default.
    pub app_brand: Option<LoginAppBrand>,
    /// Requests the vendor's shortened sign-in pages. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub codex_streamlined_login: bool,
    /// The provider to sign in to; null means the configured one. Raddle extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_provider: Option<String>,
    /// Ends the sign-in on the vendor's page instead of a page served by this machine. Absent means
    /// false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub use_hosted_login_success_page: bool,
}

/// Sign in with ChatGPT tokens the client obtained elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatgptAuthTokensLoginAccountParams {
    /// Access token, a JWT. The server reads the account's email from it.
    pub access_token: String,
    /// Id of the ChatGPT workspace or account to use.
    pub chatgpt_account_id: String,
    /// Plan of the account; null reads it from the token, or uses `unknown` if the token has none.
    pub chatgpt_plan_type: Option<String>,
}

/// Sign in with an Amazon Bedrock API key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AmazonBedrockLoginAccountParams {
    /// The Bedrock API key; the server stores it.
    pub api_key: String,
    /// The AWS region to call, such as `us-east-1`.
    pub region: String,
}

/// Sign in to Amazon Bedrock with AWS access keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AmazonBedrockAccessKeysLoginAccountParams {
    /// Id of the AWS access key.
    pub access_key_id: String,
    /// The AWS region to call, such as `us-east-1`.
    pub region: String,
    /// Secret of the access key.
    pub secret_access_key: String,
    /// Session token of temporary credentials; null for long-lived ones.
    pub session_token: Option<String>,
}

tagged! {
    /// Result of `account/login/start`. Browser and device sign-ins continue after it and end with
    /// `account/login/completed`.
    pub enum LoginAccountResponse by "type" {
        /// The key was accepted; the sign-in is complete.
        ApiKey = "apiKey",
        /// The client must open a browser.
        Chatgpt(ChatgptLoginAccountResponse) = "chatgpt",
        /// The user must enter a code.
        ChatgptDeviceCode(ChatgptDeviceCodeLoginAccountResponse) = "chatgptDeviceCode",
        /// The tokens were accepted; the sign-in is complete.
        ChatgptAuthTokens = "chatgptAuthTokens",
        /// The Bedrock credentials of either kind were accepted; the sign-in is complete.
        AmazonBedrock = "amazonBedrock",
    }
}

/// A browser sign-in in progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatgptLoginAccountResponse {
    /// The page to open in the user's browser.
    pub auth_url: String,
    /// Id of the sign-in attempt, used by `account/login/cancel` and the completion notification.
    pub login_id: String,
}

/// A device-code sign-in in progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatgptDeviceCodeLoginAccountResponse {
    /// Id of the sign-in attempt, used by `account/login/cancel` and the completion notification.
    pub login_id: String,
    /// One-time code that the user enters.
    pub user_code: String,
    /// The page on which the user enters the code.
    pub verification_url: String,
}

/// Params of `account/login/cancel`, which cancels a sign-in in progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelLoginAccountParams {
    /// Id of the sign-in attempt, from `account/login/start`.
    pub login_id: String,
}

/// Result of `account/login/cancel`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelLoginAccountResponse {
    /// Whether a sign-in was cancelled.
    pub status: CancelLoginAccountStatus,
}

/// Result of `account/logout`: empty. The method takes no params.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogoutAccountResponse {}

/// `account/updated`: the sign-in method has changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountUpdatedNotification {
    /// Current sign-in method; null when signed out.
    pub auth_mode: Option<AuthMode>,
    /// Plan of a ChatGPT account; null for others.
    pub plan_type: Option<PlanType>,
}

/// `account/login/completed`: a sign-in has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountLoginCompletedNotification {
    /// Whether the account is now signed in.
    pub success: bool,
    /// Error message; null on success.
    pub error: Option<String>,
    /// Id of the ended sign-in attempt; null for sign-in methods without an id.
    pub login_id: Option<String>,
    /// Next onboarding step for the vendor's desktop app; null for other clients.
    pub onboarding_entrypoint: Option<DesktopOnboardingEntrypoint>,
}

tagged! {
    /// The signed-in account, distinguished by the sign-in method.
    pub enum Account by "type" {
        /// An account with an API key.
        ApiKey = "apiKey",
        /// A ChatGPT account.
        Chatgpt(ChatgptAccount) = "chatgpt",
        /// Amazon Bedrock credentials.
        AmazonBedrock(AmazonBedrockAccount) = "amazonBedrock",
        /// Google Cloud credentials stored outside the server.
        Gcp = "gcp",
    }
}

/// A ChatGPT account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatgptAccount {
    /// Email address of the account; null if unknown.
    pub email: Option<String>,
    /// Plan of the account.
    pub plan_type: PlanType,
    /// Display name of the selected workspace; null if unknown.
    pub workspace_name: Option<String>,
}

/// An Amazon Bedrock account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AmazonBedrockAccount {
    /// Whether the server stores the credentials, instead of the AWS tools. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub uses_codex_managed_credentials: bool,
}

open_enum! {
    /// Brand that a sign-in page shows.
    pub enum LoginAppBrand {
        /// The product Codex.
        Codex = "codex",
        /// The product ChatGPT.
        Chatgpt = "chatgpt",
    }
}

open_enum! {
    /// Outcome of `account/login/cancel`.
    pub enum CancelLoginAccountStatus {
        /// The sign-in was cancelled.
        Canceled = "canceled",
        /// No sign-in with this id is in progress.
        NotFound = "notFound",
    }
}

open_enum! {
    /// Method by which the server authenticates itself to the provider.
    pub enum AuthMode {
        /// An API key that the server stores.
        Apikey = "apikey",
        /// A ChatGPT sign-in that the server stores and renews.
        Chatgpt = "chatgpt",
        /// ChatGPT tokens that the client renews and the server holds in memory only. Unstable.
        ChatgptAuthTokens = "chatgptAuthTokens",
        /// Request headers supplied from outside the server.
        Headers = "headers",
        /// An identity registered for an agent instead of a person.
        AgentIdentity = "agentIdentity",
        /// A personal access token.
        PersonalAccessToken = "personalAccessToken",
        /// An Amazon Bedrock API key that the server stores.
        BedrockApiKey = "bedrockApiKey",
        /// AWS access keys for Amazon Bedrock that the server stores.
        BedrockAccessKeys = "bedrockAccessKeys",
    }
}

open_enum! {
    /// Onboarding flow of a desktop client that started a sign-in.
    pub enum DesktopOnboardingEntrypoint {
        /// The flow for life sciences.
        LifeSciences = "life_sciences",
    }
}

open_enum! {
    /// Plan of a ChatGPT account, in the vendor's own terms.
    pub enum PlanType {
        /// The plan that the vendor names `free`.
        Free = "free",
        /// The plan that the vendor names `go`.
        Go = "go",
        /// The plan that the vendor names `plus`.
        Plus = "plus",
        /// The plan that the vendor names `pro`.
        Pro = "pro",
        /// The plan that the vendor names `prolite`.
        Prolite = "prolite",
        /// The plan that the vendor names `promax`.
        Promax = "promax",
        /// The plan that the vendor names `team`.
        Team = "team",
        /// The plan that the vendor names `self_serve_business_prolite`.
        SelfServeBusinessProlite = "self_serve_business_prolite",
        /// The plan that the vendor names `self_serve_business_usage_based`.
        SelfServeBusinessUsageBased = "self_serve_business_usage_based",
        /// The plan that the vendor names `business`.
        Business = "business",
        /// The plan that the vendor names `ent26`.
        Ent26 = "ent26",
        /// The plan that the vendor names `enterprise_cbp_automation`.
        EnterpriseCbpAutomation = "enterprise_cbp_automation",
        /// The plan that the vendor names `enterprise_cbp_usage_based`.
        EnterpriseCbpUsageBased = "enterprise_cbp_usage_based",
        /// The plan that the vendor names `enterprise`.
        Enterprise = "enterprise",
        /// The plan that the vendor names `edu`.
        Edu = "edu",
        /// The plan that the vendor names `edu_plus`.
        EduPlus = "edu_plus",
        /// The plan that the vendor names `edu_pro`.
        EduPro = "edu_pro",
        /// The plan that the vendor names `sci`.
        Sci = "sci",
        /// The plan that the vendor names `sci_plus`.
        SciPlus = "sci_plus",
        /// The plan is unknown.
        Unknown = "unknown",
    }
}
