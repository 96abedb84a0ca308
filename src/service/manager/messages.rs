//! Messages as operators see them (`contract/05` E3): also those that were recalled, with what they said.

use std::collections::HashMap;

use diesel::QueryResult;

use super::Accounts;
pub use crate::db::group_messages::GroupMessageFilter;
pub use crate::db::private_messages::PrivateMessageFilter;
use crate::db::{Db, group_messages, groups, private_messages};
use crate::domain::group_message::GroupMessage;
use crate::domain::ids::{GroupId, MessageId, UserId};
use crate::domain::page::{Page, Paged};
use crate::domain::private_message::PrivateMessage;
use crate::protocol::manager_payload::{ManagedGroupMessageBody, ManagedPrivateMessageBody};
use crate::service::{group_messages as group_verbs, private_messages as private_verbs};

pub async fn list_private(
    db: &mut Db,
    filter: &PrivateMessageFilter,
    page: Page,
) -> QueryResult<Paged<ManagedPrivateMessageBody>> {
    let Paged { list, total } = private_messages::list_page(db, filter, page).await?;
    let accounts = Accounts::load(db, list.iter().flat_map(|row| [row.sender_id, row.receiver_id])).await?;
    let messages = private_verbs::present_whole(db, list).await?;
    let show = |message: PrivateMessage| ManagedPrivateMessageBody {
        sender_nickname: accounts.nickname(message.sender_id),
        receiver_nickname: accounts.nickname(message.receiver_id),
        ..private_body(message)
    };
    Ok(Paged { list: messages.into_iter().map(show).collect(), total })
}

/// One message, without names.
pub async fn get_private(db: &mut Db, id: MessageId) -> QueryResult<Option<ManagedPrivateMessageBody>> {
    let rows = private_messages::list_by_ids(db, vec![id]).await?;
    Ok(private_verbs::present_whole(db, rows).await?.pop().map(private_body))
}

fn private_body(message: PrivateMessage) -> ManagedPrivateMessageBody {
    ManagedPrivateMessageBody {
        id: message.id,
        client_message_id: message.client_message_id,
        sender_id: message.sender_id,
        sender_nickname: None,
        receiver_id: message.receiver_id,
        receiver_nickname: None,
        r#type: message.content_type,
        content: message.content,
        status: message.status,
        receipt_status: message.receipt_status,
        send_time: message.send_time,
        create_time: message.send_time,
    }
}

pub async fn list_group(
    db: &mut Db,
    filter: &GroupMessageFilter,
    page: Page,
) -> QueryResult<Paged<ManagedGroupMessageBody>> {
    let Paged { list, total } = group_messages::list_page(db, filter, page).await?;
    let mentioned = list.iter().flat_map(|row| row.mentions().unwrap_or_default()).map(UserId);
    let people: Vec<UserId> = list.iter().map(|row| row.sender_id).chain(mentioned).collect();
    let accounts = Accounts::load(db, people).await?;
    let groups = groups::list_by_ids(db, list.iter().map(|row| row.group_id).collect()).await?;
    let names: HashMap<GroupId, String> = groups.into_iter().map(|group| (group.id, group.name)).collect();
    let messages = group_verbs::present_whole(db, list).await?;
    let show = |message: GroupMessage| {
        let mentioned = message.at_user_ids.as_deref();
        ManagedGroupMessageBody {
            group_name: names.get(&message.group_id).cloned(),
            sender_nickname: accounts.nickname(message.sender_id),
            at_user_nicknames: mentioned.map(|ids| ids.iter().map(|id| accounts.nickname(UserId(*id))).collect()),
            ..group_body(message)
        }
    };
    Ok(Paged { list: messages.into_iter().map(show).collect(), total })
}

/// One message, without names.
pub async fn get_group(db: &mut Db, id: MessageId) -> QueryResult<Option<ManagedGroupMessageBody>> {
    let rows = group_messages::list_by_ids(db, vec![id]).await?;
    Ok(group_verbs::present_whole(db, rows).await?.pop().map(group_body))
}

fn group_body(message: GroupMessage) -> ManagedGroupMessageBody {
    ManagedGroupMessageBody {
        id: message.id,
        client_message_id: message.client_message_id,
        group_id: message.group_id,
        group_name: None,
        sender_id: message.sender_id,
        sender_nickname: None,
        r#type: message.content_type,
        content: message.content,
        status: message.status,
        at_user_ids: message.at_user_ids,
        at_user_nicknames: None,
        receipt_status: message.receipt_status,
        send_time: message.send_time,
        create_time: message.send_time,
    }
}
