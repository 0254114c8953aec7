//! The command line of `raddle judge`.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct Judge {
    /// Approval policy of the thread that would run it
    #[arg(long, value_enum, default_value_t = JudgeApproval::OnRequest)]
    pub(crate) approval_policy: JudgeApproval,

    /// Judge it as a request to run outside the sandbox
    #[arg(long)]
    pub(crate) beyond: bool,

    /// Command line, as one argument
    #[arg(value_name = "LINE")]
    pub(crate) line: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum JudgeApproval {
    Untrusted,
    OnRequest,
    Never,
}
