//! The set-based path of the DB writer: a run of consecutive sends and read reports, executed with a handful of
//! statements instead of one transaction each (`design.md` section 4). Its outcome equals that of its commands one
//! after another, in order of arrival.

use diesel::QueryResult;

use super::conversation_reads::{self, Conversation, ReadReport};
use super::group_messages::{self, GroupDraft};
use super::private_messages::{self, PrivateDraft};
use super::{Locks, Tx};
use crate::domain::group_message::GroupMessage;
use crate::domain::ids::MessageId;
use crate::domain::private_message::PrivateMessage;
use crate::domain::refusal::Refusal;
use crate::error::AppError;

/// A command of the set-based path.
pub enum RunCommand {
    SendPrivate(PrivateDraft),
    SendGroup(GroupDraft),
    ReportRead(ReadReport),
}

/// What a command of a run came to.
#[derive(Debug)]
pub enum RunAnswer {
    SentPrivate(PrivateMessage),
    SentGroup(GroupMessage),
    Read,
}

impl RunCommand {
    /// Its name in metrics and logs.
    pub fn kind(&self) -> &'static str {
        match self {
            RunCommand::SendPrivate(_) => "private_message.send",
            RunCommand::SendGroup(_) => "group_message.send",
            RunCommand::ReportRead(_) => "conversation.read",
        }
    }

    /// The bytes that count towards a batch's limit.
    pub fn bytes(&self) -> usize {
        match self {
            RunCommand::SendPrivate(draft) => draft.content.raw().len() + 128,
            RunCommand::SendGroup(draft) => draft.content.raw().len() + 128,
            RunCommand::ReportRead(_) => 64,
        }
    }

    /// Counters to lock before anything else. A private send needs none: it locks after its checks.
    pub fn early_locks(&self) -> Locks {
        match self {
            RunCommand::SendPrivate(_) => Locks::NONE,
            RunCommand::SendGroup(_) => Locks::GROUP,
            RunCommand::ReportRead(_) => Locks::CLOCK,
        }
    }

    /// Counters that it will lock at some time.
    pub fn all_locks(&self) -> Locks {
        match self {
            RunCommand::SendPrivate(_) => Locks::PRIVATE,
            _ => self.early_locks(),
        }
    }
}

/// Executes a run; one answer for each command, in their order. A database error fails the run as a whole.
pub async fn execute(tx: &mut Tx<'_>, commands: &[&RunCommand]) -> QueryResult<Vec<Result<RunAnswer, AppError>>> {
    tx.begin_command();
    let (mut private_drafts, mut group_drafts) = (Vec::new(), Vec::new());
    for command in commands {
        match command {
            RunCommand::SendPrivate(draft) => private_drafts.push(draft),
            RunCommand::SendGroup(draft) => group_drafts.push(draft),
            RunCommand::ReportRead(_) => {}
        }
    }
    let private = private_messages::send_all(tx, &private_drafts).await?;
    let group = group_messages::send_all(tx, &group_drafts).await?;

    // A report sees the messages that came before it in the run, and none after it.
    let (mut newest_private, mut newest_group) = (private.newest_before, group.newest_before);
    let (mut private, mut group) = (private.outcomes.into_iter(), group.outcomes.into_iter());
    let mut reports = Vec::new();
    let mut answers: Vec<Option<Result<RunAnswer, AppError>>> = Vec::with_capacity(commands.len());
    for command in commands {
        answers.push(match command {
            RunCommand::SendPrivate(_) => private.next().map(|(id, outcome)| {
                newest_private = id.unwrap_or(newest_private);
                answer(outcome, RunAnswer::SentPrivate)
            }),
            RunCommand::SendGroup(_) => group.next().map(|(id, outcome)| {
                newest_group = id.unwrap_or(newest_group);
                answer(outcome, RunAnswer::SentGroup)
            }),
            RunCommand::ReportRead(report) => {
                reports.push((report, newest_for(report, newest_private, newest_group)));
                None
            }
        });
    }
    let mut read = conversation_reads::report_all(tx, &reports).await?.into_iter();
    let missing = || Err(AppError::Internal("a command of a run has no answer".into()));
    let fill = |known: Option<Result<RunAnswer, AppError>>| {
        known.or_else(|| read.next().map(|outcome| answer(outcome, |()| RunAnswer::Read))).unwrap_or_else(missing)
    };
    Ok(answers.into_iter().map(fill).collect())
}

fn answer<T>(outcome: Result<T, Refusal>, wrap: impl FnOnce(T) -> RunAnswer) -> Result<RunAnswer, AppError> {
    outcome.map(wrap).map_err(AppError::from)
}

fn newest_for(report: &ReadReport, private: MessageId, group: MessageId) -> MessageId {
    match report.conversation {
        Conversation::With(_) => private,
        Conversation::In(_) => group,
    }
}
