//! The account the server uses towards model providers: reading it, signing in and signing out.
//! Most arms belong to one vendor and are here so that its clients are understood.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::*;

/// Params of `account/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetAccountParams {
    /// Renew the stored token before answering. No effect when the client supplies the tokens itself.
    #[serde(default, deserialize_with = "null_as_default")]
    pub refresh_token: bool,
}

/// Result of `account/read`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetAccountResponse {
    /// Whether the model provider needs an OpenAI sign-in. If false, clients skip their login screen.
    pub requires_openai_auth: bool,
    /// The account signed in; null when there is none.
    pub account: Option<Account>,
    /// Where the vendor's backend for this workspace lives; null elsewhere.
    #[schemars(extend("x-experimental" = true))]
    pub workspace_routing: Option<WorkspaceRouting>,
}

/// Where the vendor's backend for a workspace lives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceRouting {
    /// Where the workspace's data must stay.
    pub account_routing_override: AccountRoutingOverride,
    /// Scheme, host and port of the backend.
    pub backend_origin: String,
    /// The workspace's account.
    pub chatgpt_account_id: String,
}

open_enum! {
    /// Where a workspace's data must stay.
    pub enum AccountRoutingOverride {
        /// Anywhere.
        NoConstraint = "NO_CONSTRAINT",
        /// In the region `us`.
        Us = "us",
        /// In the region `us_cr`.
        UsCr = "us_cr",
    }
}

tagged! {
    /// Params of `account/login/start`, told apart by the way of signing in.
    pub enum LoginAccountParams by "type" {
        /// With an API key; the one way that suits any provider.
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
    /// The key; the server stores it.
    pub api_key: String,
    /// The provider that the key is for; null means the configured one. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_provider: Option<String>,
}

/// Sign in through ChatGPT in a browser.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatgptLoginAccountParams {
    /// Whose name the sign-in pages show; null means the default.
    pub app_brand: Option<LoginAppBrand>,
    /// Ask for the vendor's shortened sign-in pages. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub codex_streamlined_login: bool,
    /// The provider to sign in with; null means the configured one. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_provider: Option<String>,
    /// End on the vendor's page rather than on one served by this machine. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub use_hosted_login_success_page: bool,
}

/// Sign in with ChatGPT tokens the client obtained elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatgptAuthTokensLoginAccountParams {
    /// The access token, a JWT. The account's email is read from it.
    pub access_token: String,
    /// The ChatGPT workspace or account to work under.
    pub chatgpt_account_id: String,
    /// The plan; null reads it from the token, and `unknown` is used if it is not there.
    pub chatgpt_plan_type: Option<String>,
}

/// Sign in with an Amazon Bedrock API key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AmazonBedrockLoginAccountParams {
    /// The Bedrock API key.
    pub api_key: String,
    /// The AWS region to call, such as `us-east-1`.
    pub region: String,
}

/// Sign in to Amazon Bedrock with AWS access keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AmazonBedrockAccessKeysLoginAccountParams {
    /// The id of the AWS access key.
    pub access_key_id: String,
    /// The AWS region to call, such as `us-east-1`.
    pub region: String,
    /// The secret that goes with the access key.
    pub secret_access_key: String,
    /// The session token of temporary credentials; null for lasting ones.
    pub session_token: Option<String>,
}

tagged! {
    /// Result of `account/login/start`.
    /// Browser and device sign-ins go on after it and end with `account/login/completed`.
    pub enum LoginAccountResponse by "type" {
        /// The key was taken; nothing more to do.
        ApiKey = "apiKey",
        /// A browser must be opened.
        Chatgpt(ChatgptLoginAccountResponse) = "chatgpt",
        /// The user must enter a code.
        ChatgptDeviceCode(ChatgptDeviceCodeLoginAccountResponse) = "chatgptDeviceCode",
        /// The tokens were taken; nothing more to do.
        ChatgptAuthTokens = "chatgptAuthTokens",
        /// The Bedrock credentials were taken, keys of either kind.
        AmazonBedrock = "amazonBedrock",
    }
}

/// A browser sign-in that has begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatgptLoginAccountResponse {
    /// The page to open in the user's browser.
    pub auth_url: String,
    /// Names the attempt, for `account/login/cancel` and the completion notification.
    pub login_id: String,
}

/// A device-code sign-in that has begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatgptDeviceCodeLoginAccountResponse {
    /// Names the attempt, for `account/login/cancel` and the completion notification.
    pub login_id: String,
    /// The code the user enters, good for one use.
    pub user_code: String,
    /// The page on which to enter it.
    pub verification_url: String,
}

/// Params of `account/login/cancel`: give up a sign-in that is under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelLoginAccountParams {
    /// The attempt, as `account/login/start` named it.
    pub login_id: String,
}

/// Result of `account/login/cancel`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelLoginAccountResponse {
    /// Whether there was anything to give up.
    pub status: CancelLoginAccountStatus,
}

/// Result of `account/logout`: empty. The method takes no params.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LogoutAccountResponse {}

/// `account/updated`: the way of signing in has changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountUpdatedNotification {
    /// The way now in use; null when signed out.
    pub auth_mode: Option<AuthMode>,
    /// The plan of a ChatGPT account; null for others.
    pub plan_type: Option<PlanType>,
}

/// `account/login/completed`: a sign-in has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountLoginCompletedNotification {
    /// Whether the account is now signed in.
    pub success: bool,
    /// Why it failed; null on success.
    pub error: Option<String>,
    /// The attempt that ended; null for ways of signing in that have no id.
    pub login_id: Option<String>,
    /// Where the vendor's desktop app should lead a new user next; null elsewhere.
    pub onboarding_entrypoint: Option<DesktopOnboardingEntrypoint>,
}

tagged! {
    /// Who is signed in, told apart by the way.
    pub enum Account by "type" {
        /// Someone with an API key.
        ApiKey = "apiKey",
        /// A ChatGPT account.
        Chatgpt(ChatgptAccount) = "chatgpt",
        /// Amazon Bedrock credentials.
        AmazonBedrock(AmazonBedrockAccount) = "amazonBedrock",
        /// Google Cloud credentials kept outside the server.
        Gcp = "gcp",
    }
}

/// A ChatGPT account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChatgptAccount {
    /// Its email address; null if not known.
    pub email: Option<String>,
    /// Its plan.
    pub plan_type: PlanType,
    /// The chosen workspace's name for display; null if not known.
    pub workspace_name: Option<String>,
}

/// An Amazon Bedrock account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AmazonBedrockAccount {
    /// Whether the server keeps the credentials, rather than the AWS tools. Absent means false.
    #[serde(default, deserialize_with = "null_as_default")]
    pub uses_codex_managed_credentials: bool,
}

open_enum! {
    /// The product name a sign-in page shows.
    pub enum LoginAppBrand {
        /// Codex.
        Codex = "codex",
        /// ChatGPT.
        Chatgpt = "chatgpt",
    }
}

open_enum! {
    /// What became of a request to give up a sign-in.
    pub enum CancelLoginAccountStatus {
        /// The sign-in was given up.
        Canceled = "canceled",
        /// No such sign-in is under way.
        NotFound = "notFound",
    }
}

open_enum! {
    /// The way in which the server proves itself to the provider.
    pub enum AuthMode {
        /// An API key that the server stores.
        Apikey = "apikey",
        /// A ChatGPT sign-in that the server keeps and renews.
        Chatgpt = "chatgpt",
        /// ChatGPT tokens that the client renews and the server holds in memory only. Unstable.
        ChatgptAuthTokens = "chatgptAuthTokens",
        /// Request headers supplied from outside.
        Headers = "headers",
        /// An identity registered for an agent rather than a person.
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
    /// The first-run path of a desktop client that a login came through.
    pub enum DesktopOnboardingEntrypoint {
        /// The path for life sciences.
        LifeSciences = "life_sciences",
    }
}

open_enum! {
    /// The plan of a ChatGPT account, in the vendor's own words.
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
        /// Not known.
        Unknown = "unknown",
    }
}
