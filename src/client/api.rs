//! The HTTP calls of a signed-in user. An access token that has ended is renewed once, and the call repeated.

use reqwest::{Method, RequestBuilder};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::Mutex;

use super::endpoint::Endpoint;
use super::error::ClientError;
use super::socket::SocketAddress;
use super::sync::{SyncAnswer, SyncRequest, Unread};
use super::types::{GroupDraft, GroupMessage, PrivateDraft, PrivateMessage, Session, Tokens};
use crate::domain::group::MEMBER_ACTIVE;
use crate::domain::ids::{GroupId, LoginId, MessageId, RequestId, UserId};

const UNAUTHENTICATED: i64 = 401;

/// The calls of one sign-in. All return [`ClientError`]: refusals, [`ClientError::SignedOut`], or no answer.
#[derive(Debug)]
pub struct Api {
    endpoint: Endpoint,
    user_id: UserId,
    /// Locked while a renewal runs, so that calls which fail together renew once and wait for it.
    tokens: Mutex<Tokens>,
}

#[expect(clippy::missing_errors_doc, reason = "they all have the errors named at the type")]
impl Api {
    pub fn new(endpoint: Endpoint, tokens: Tokens) -> Api {
        Api { endpoint, user_id: tokens.user_id, tokens: Mutex::new(tokens) }
    }

    /// Who is signed in.
    pub fn user_id(&self) -> UserId {
        self.user_id
    }

    /// The tokens as they are now.
    pub async fn tokens(&self) -> Tokens {
        self.tokens.lock().await.clone()
    }

    /// The socket's address with the present refresh token.
    pub(super) async fn socket_address(&self, device: &str) -> Result<SocketAddress, ClientError> {
        self.endpoint.socket_address(&self.tokens.lock().await.refresh_token, device)
    }

    /// P1, once; [`Device::send`](super::Device::send) repeats until it is answered.
    pub async fn send_private(&self, draft: &PrivateDraft) -> Result<PrivateMessage, ClientError> {
        self.call(self.post("/admin-api/im/message/private/send").json(draft)).await
    }

    /// Everything new after the cursors, a page of each stream.
    pub(super) async fn sync(&self, request: &SyncRequest) -> Result<SyncAnswer, ClientError> {
        self.call(self.post("/admin-api/im/sync").json(request)).await
    }

    /// My unread messages as the server counts them.
    pub async fn unread(&self) -> Result<Unread, ClientError> {
        self.call(self.post("/admin-api/im/unread").json(&json!({}))).await
    }

    /// G1, once; [`Device::send_group`](super::Device::send_group) repeats until it is answered.
    pub async fn send_group(&self, draft: &GroupDraft) -> Result<GroupMessage, ClientError> {
        self.call(self.post("/admin-api/im/message/group/send").json(draft)).await
    }

    /// G4: I have read the group up to `message`.
    pub async fn read_group(&self, group: GroupId, message: MessageId) -> Result<(), ClientError> {
        let query = [("groupId", group.0), ("messageId", message.0)];
        self.call_for_nothing(self.put("/admin-api/im/message/group/read").query(&query)).await
    }

    /// Who is in the group now, ascending.
    pub async fn group_members(&self, group: GroupId) -> Result<Vec<UserId>, ClientError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Member {
            user_id: UserId,
            status: i32,
        }

        let request = self.get("/admin-api/im/group-member/list").query(&[("groupId", group.0)]);
        let members: Vec<Member> = self.call(request).await?;
        let active = members.into_iter().filter(|member| member.status == MEMBER_ACTIVE);
        let mut ids: Vec<UserId> = active.map(|member| member.user_id).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// P3: messages with this peer below `max_id`, newest first. `limit` is 1–200.
    pub async fn list_private(
        &self,
        peer: UserId,
        max_id: Option<MessageId>,
        limit: usize,
    ) -> Result<Vec<PrivateMessage>, ClientError> {
        let mut query = vec![("receiverId", peer.0), ("limit", to_i64(limit))];
        query.extend(max_id.map(|id| ("maxId", id.0)));
        let page: Option<_> = self.call(self.get("/admin-api/im/message/private/list").query(&query)).await?;
        Ok(page.unwrap_or_default())
    }

    /// P4: I have read what `peer` wrote up to `message`.
    pub async fn read_private(&self, peer: UserId, message: MessageId) -> Result<(), ClientError> {
        let query = [("receiverId", peer.0), ("messageId", message.0)];
        self.call_for_nothing(self.put("/admin-api/im/message/private/read").query(&query)).await
    }

    /// P5: how far `peer` has read what I wrote.
    pub async fn peer_read(&self, peer: UserId) -> Result<Option<MessageId>, ClientError> {
        let request = self.get("/admin-api/im/message/private/max-read-message-id");
        self.call(request.query(&[("peerId", peer.0)])).await
    }

    /// P6: takes back a message of mine; the answer is the RECALL row.
    pub async fn recall_private(&self, message: MessageId) -> Result<PrivateMessage, ClientError> {
        let request = self.request(Method::DELETE, "/admin-api/im/message/private/recall");
        self.call(request.query(&[("id", message.0)])).await
    }

    /// Tells `peer` that I am writing.
    pub async fn typing_private(&self, peer: UserId) -> Result<(), ClientError> {
        let request = self.put("/admin-api/im/message/private/typing");
        self.call_for_nothing(request.query(&[("receiverId", peer.0)])).await
    }

    /// Asks `peer` to be my friend. `None` when no request was needed.
    pub async fn apply_friend(&self, peer: UserId, text: &str) -> Result<Option<RequestId>, ClientError> {
        let body = json!({ "toUserId": peer, "applyContent": text, "addSource": 1 });
        self.call(self.post("/admin-api/im/friend-request/apply").json(&body)).await
    }

    /// Agrees to a friend request that came to me.
    pub async fn agree_friend(&self, request: RequestId) -> Result<(), ClientError> {
        let call = self.put("/admin-api/im/friend-request/agree");
        self.call_for_nothing(call.query(&[("id", request.0)])).await
    }

    /// My sign-ins.
    pub async fn sessions(&self) -> Result<Vec<Session>, ClientError> {
        let page: Option<_> = self.call(self.get("/admin-api/im/session/list")).await?;
        Ok(page.unwrap_or_default())
    }

    /// Ends one of my sign-ins.
    pub async fn close_session(&self, session: LoginId) -> Result<(), ClientError> {
        let request = self.request(Method::DELETE, "/admin-api/im/session/close");
        self.call_for_nothing(request.query(&[("id", session.0)])).await
    }

    /// Ends this sign-in.
    pub async fn logout(&self) -> Result<(), ClientError> {
        self.call_for_nothing(self.post("/admin-api/system/auth/logout")).await
    }

    /// Tells a group that I am writing.
    pub async fn typing_group(&self, group: GroupId) -> Result<(), ClientError> {
        let request = self.put("/admin-api/im/message/group/typing");
        self.call_for_nothing(request.query(&[("groupId", group.0)])).await
    }

    /// Makes a group of me and friends of mine, who are members at once.
    pub async fn create_group(&self, name: &str, members: &[UserId]) -> Result<GroupId, ClientError> {
        #[derive(Deserialize)]
        struct Group {
            id: GroupId,
        }

        let body = json!({ "name": name, "memberUserIds": members });
        self.call::<Group>(self.post("/admin-api/im/group/create").json(&body)).await.map(|group| group.id)
    }

    /// Any other GET, for tests and tools: `path` with its query, for example `/admin-api/im/friend/list`.
    pub async fn get_json<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.call(self.get(path)).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.endpoint.request(method, path)
    }

    fn get(&self, path: &str) -> RequestBuilder {
        self.request(Method::GET, path)
    }

    fn post(&self, path: &str) -> RequestBuilder {
        self.request(Method::POST, path)
    }

    fn put(&self, path: &str) -> RequestBuilder {
        self.request(Method::PUT, path)
    }

    /// For verbs whose answer says nothing but that it was done.
    async fn call_for_nothing(&self, request: RequestBuilder) -> Result<(), ClientError> {
        self.call::<serde_json::Value>(request).await.map(drop)
    }

    async fn call<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ClientError> {
        let access_token = self.tokens.lock().await.access_token.clone();
        let replay = request.try_clone();
        match self.endpoint.execute(request.bearer_auth(&access_token)).await {
            Err(ClientError::Refused { code: UNAUTHENTICATED, .. }) => {}
            other => return other,
        }
        let renewed = self.renew(&access_token).await?;
        match replay {
            Some(replay) => match self.endpoint.execute(replay.bearer_auth(renewed)).await {
                Err(ClientError::Refused { code: UNAUTHENTICATED, .. }) => Err(ClientError::SignedOut),
                other => other,
            },
            None => Err(ClientError::SignedOut),
        }
    }

    /// A newer access token than `stale`, which may have been fetched by another call meanwhile.
    async fn renew(&self, stale: &str) -> Result<String, ClientError> {
        let mut tokens = self.tokens.lock().await;
        if tokens.access_token == stale {
            *tokens = self.endpoint.refresh(&tokens.refresh_token).await?;
        }
        Ok(tokens.access_token.clone())
    }
}

fn to_i64(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}
