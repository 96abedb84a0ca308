//! The set-based path of the DB writer: a run of consecutive sends and read reports, executed with a handful of
//! statements instead of one transaction each (`design.md` section 4). Its outcome equals that of its commands one
//! after another, in order of arrival.

use diesel::QueryResult;

use super::Tx;
use super::conversation_reads::{self, ReadReport};
use super::private_messages::{self, PrivateDraft, SendOutcome};
use crate::domain::private_message::PrivateMessage;
use crate::error::AppError;

/// A command of the set-based path.
pub enum RunCommand {
    SendPrivate(PrivateDraft),
    ReportRead(ReadReport),
}

/// What a command of a run came to.
#[derive(Debug)]
pub enum RunAnswer {
    Sent(PrivateMessage),
    Read,
}

impl RunCommand {
    /// Its name in metrics and logs.
    pub fn kind(&self) -> &'static str {
        match self {
            RunCommand::SendPrivate(_) => "private_message.send",
            RunCommand::ReportRead(_) => "conversation.read",
        }
    }

    /// The bytes that count towards a batch's limit.
    pub fn bytes(&self) -> usize {
        match self {
            RunCommand::SendPrivate(draft) => draft.content.raw().len() + 128,
            RunCommand::ReportRead(_) => 64,
        }
    }
}

/// Executes a run; one answer for each command, in their order. A database error fails the run as a whole.
pub async fn execute(tx: &mut Tx<'_>, commands: &[&RunCommand]) -> QueryResult<Vec<Result<RunAnswer, AppError>>> {
    tx.begin_command();
    let mut drafts = Vec::new();
    for command in commands {
        if let RunCommand::SendPrivate(draft) = command {
            drafts.push(draft);
        }
    }
    let sent = private_messages::send_all(tx, &drafts).await?;

    // A report sees the messages that came before it in the run, and none after it.
    let mut newest_visible = sent.newest_before;
    let mut sends = sent.outcomes.into_iter();
    let mut reports = Vec::new();
    let mut answers = Vec::with_capacity(commands.len());
    for command in commands {
        match command {
            RunCommand::SendPrivate(_) => {
                let missing =
                    || SendOutcome { id: None, answer: Err(AppError::Internal("a send has no answer".into())) };
                let outcome = sends.next().unwrap_or_else(missing);
                newest_visible = outcome.id.unwrap_or(newest_visible);
                answers.push(outcome.answer.map(RunAnswer::Sent));
            }
            RunCommand::ReportRead(report) => {
                reports.push((report, newest_visible));
                answers.push(Ok(RunAnswer::Read));
            }
        }
    }
    conversation_reads::report_all(tx, &reports).await?;
    Ok(answers)
}
