//! What a user does, with the ids that it names, and the call of the server that does it.

use serde_json::{Value, json};

/// A message that somebody sends; a repeat is the same draft again.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    pub from: i64,
    /// The peer, or the group.
    pub to: i64,
    pub is_group: bool,
    pub client_id: String,
    pub text: String,
    pub quote: Option<i64>,
    pub receipt: Option<bool>,
}

/// A verb of the product. `by` is who acts.
#[derive(Clone, Debug)]
pub enum Verb {
    Send(Draft),
    Recall {
        by: i64,
        id: i64,
        is_group: bool,
    },
    ReadPrivate {
        by: i64,
        peer: i64,
        id: i64,
    },
    ReadGroup {
        by: i64,
        group: i64,
        id: i64,
    },
    ApplyFriend {
        by: i64,
        to: i64,
        text: String,
    },
    /// The request is that of `from` to `to`; its id is looked up.
    HandleFriend {
        by: i64,
        from: i64,
        to: i64,
        agree: bool,
    },
    Block {
        by: i64,
        friend: i64,
        on: bool,
    },
    Unfriend {
        by: i64,
        friend: i64,
    },
    Create {
        by: i64,
        members: Vec<i64>,
        approval: bool,
    },
    Invite {
        by: i64,
        group: i64,
        who: Vec<i64>,
    },
    Kick {
        by: i64,
        group: i64,
        who: Vec<i64>,
    },
    Quit {
        by: i64,
        group: i64,
    },
    ApplyGroup {
        by: i64,
        group: i64,
        text: String,
    },
    /// The request of `user` for `group`; its id is looked up.
    HandleGroup {
        by: i64,
        group: i64,
        user: i64,
        agree: bool,
    },
    /// Seconds; 0 is for ever; `None` ends the mute.
    Mute {
        by: i64,
        group: i64,
        who: i64,
        seconds: Option<i64>,
    },
    MuteAll {
        by: i64,
        group: i64,
        on: bool,
    },
    Admin {
        by: i64,
        group: i64,
        who: i64,
        on: bool,
    },
    Transfer {
        by: i64,
        group: i64,
        to: i64,
    },
    Pin {
        by: i64,
        group: i64,
        id: i64,
        on: bool,
    },
    Rename {
        by: i64,
        group: i64,
        name: String,
    },
    Approval {
        by: i64,
        group: i64,
        on: bool,
    },
    Silence {
        by: i64,
        group: i64,
        on: bool,
    },
    Dissolve {
        by: i64,
        group: i64,
    },
    /// By an operator.
    Ban {
        by: i64,
        group: i64,
        on: bool,
    },
    /// By an operator.
    End {
        by: i64,
        group: i64,
    },
}

/// A call of the server.
pub struct Call {
    pub by: i64,
    pub method: &'static str,
    pub path: String,
    pub body: Option<Value>,
}

impl Verb {
    /// The call; `request` is the id of the request that is handled.
    pub fn call(&self, request: Option<i64>) -> Call {
        let request = request.unwrap_or_default();
        let get = |by: &i64, method, path: String| Call { by: *by, method, path, body: None };
        let put = |by: &i64, path: &str, body: Value| Call {
            by: *by,
            method: "PUT",
            path: format!("/im/group/{path}"),
            body: Some(body),
        };
        match self {
            Verb::Send(draft) => draft.call(),
            Verb::Recall { by, id, is_group } => {
                let table = if *is_group { "group" } else { "private" };
                get(by, "DELETE", format!("/im/message/{table}/recall?id={id}"))
            }
            Verb::ReadPrivate { by, peer, id } => {
                get(by, "PUT", format!("/im/message/private/read?receiverId={peer}&messageId={id}"))
            }
            Verb::ReadGroup { by, group, id } => {
                get(by, "PUT", format!("/im/message/group/read?groupId={group}&messageId={id}"))
            }
            Verb::ApplyFriend { by, to, text } => {
                post(by, "/im/friend-request/apply", json!({"toUserId": to, "applyContent": text}))
            }
            Verb::HandleFriend { by, agree, .. } => {
                get(by, "PUT", format!("/im/friend-request/{}?id={request}", handling(*agree)))
            }
            Verb::Block { by, friend, on } => {
                let verb = if *on { "block" } else { "unblock" };
                get(by, "PUT", format!("/im/friend/{verb}?friendUserId={friend}"))
            }
            Verb::Unfriend { by, friend } => get(by, "DELETE", format!("/im/friend/delete?friendUserId={friend}")),
            Verb::Create { by, members, approval } => {
                post(by, "/im/group/create", json!({"name": "new", "memberUserIds": members, "joinApproval": approval}))
            }
            Verb::Invite { by, group, who } => {
                post(by, "/im/group/invite", json!({"groupId": group, "memberUserIds": who}))
            }
            Verb::Kick { by, group, who } => {
                let body = json!({"groupId": group, "memberUserIds": who});
                Call { method: "DELETE", ..post(by, "/im/group/kicking", body) }
            }
            Verb::Quit { by, group } => get(by, "DELETE", format!("/im/group/quit?groupId={group}")),
            Verb::ApplyGroup { by, group, text } => {
                let body = json!({"groupId": group, "applyContent": text, "addSource": 4});
                post(by, "/im/group-request/apply", body)
            }
            Verb::HandleGroup { by, agree, .. } => {
                get(by, "PUT", format!("/im/group-request/{}?id={request}", handling(*agree)))
            }
            Verb::Mute { by, group, who, seconds: Some(seconds) } => {
                put(by, "mute-member", json!({"id": group, "userId": who, "mutedSeconds": seconds}))
            }
            Verb::Mute { by, group, who, seconds: None } => {
                put(by, "cancel-mute-member", json!({"id": group, "userId": who}))
            }
            Verb::MuteAll { by, group, on } => put(by, "mute-all", json!({"id": group, "mutedAll": on})),
            Verb::Admin { by, group, who, on } => {
                put(by, if *on { "add-admin" } else { "remove-admin" }, json!({"id": group, "userIds": [who]}))
            }
            Verb::Transfer { by, group, to } => put(by, "transfer-owner", json!({"id": group, "newOwnerUserId": to})),
            Verb::Pin { by, group, id, on } => {
                put(by, if *on { "pin-message" } else { "unpin-message" }, json!({"id": group, "messageId": id}))
            }
            Verb::Rename { by, group, name } => put(by, "update", json!({"id": group, "name": name})),
            Verb::Approval { by, group, on } => put(by, "update", json!({"id": group, "joinApproval": on})),
            Verb::Silence { by, group, on } => {
                let body = json!({"groupId": group, "silent": on});
                Call { method: "PUT", ..post(by, "/im/group-member/update", body) }
            }
            Verb::Dissolve { by, group } => get(by, "DELETE", format!("/im/group/dissolve?id={group}")),
            Verb::Ban { by, group, on: true } => {
                let body = json!({"id": group, "reason": "spam"});
                Call { method: "PUT", ..post(by, "/im/manager/group/ban", body) }
            }
            Verb::Ban { by, group, on: false } => get(by, "PUT", format!("/im/manager/group/unban?id={group}")),
            Verb::End { by, group } => get(by, "DELETE", format!("/im/manager/group/dissolve?id={group}")),
        }
    }
}

impl Draft {
    fn call(&self) -> Call {
        let (path, target) = if self.is_group { ("group", "groupId") } else { ("private", "receiverId") };
        let mut content = json!({"content": self.text});
        if let Some(quote) = self.quote {
            content["quote"] = json!({"messageId": quote});
        }
        let mut body = json!({"clientMessageId": self.client_id, "type": 101, "content": content.to_string()});
        body[target] = json!(self.to);
        if let Some(receipt) = self.receipt {
            body["receipt"] = json!(receipt);
        }
        post(&self.from, &format!("/im/message/{path}/send"), body)
    }
}

fn post(by: &i64, path: &str, body: Value) -> Call {
    Call { by: *by, method: "POST", path: path.to_owned(), body: Some(body) }
}

fn handling(agree: bool) -> &'static str {
    if agree { "agree" } else { "refuse" }
}
