//! What the web client asks on its way to the chat and what is fixed here: the one tenant, labels, notices
//! (`contract/01` section 7, rows 1, 2, 8–11).

use serde::Serialize;

use super::caller::{Caller, TENANT};
use super::response::{Answer, Reply};

/// Name of the one tenant.
const TENANT_NAME: &str = "Nudge";

#[derive(Serialize)]
pub struct TenantBody {
    id: i64,
    name: &'static str,
}

const TENANT_BODY: TenantBody = TenantBody { id: TENANT, name: TENANT_NAME };

/// GET `/system/tenant/get-by-website`.
pub async fn tenant_by_website() -> Answer<TenantBody> {
    Ok(Reply(TENANT_BODY))
}

/// GET `/system/tenant/get-id-by-name`: whatever name the client was built with, it means the one tenant.
pub async fn tenant_id_by_name() -> Answer<i64> {
    Ok(Reply(TENANT))
}

/// GET `/system/tenant/simple-list`.
pub async fn tenants() -> Answer<[TenantBody; 1]> {
    Ok(Reply([TENANT_BODY]))
}

/// GET `/system/notify-message/get-unread-count`. There are no notices.
pub async fn unread_notice_count(_: Caller) -> Answer<i64> {
    Ok(Reply(0))
}

/// GET `/system/notify-message/get-unread-list`.
pub async fn unread_notices(_: Caller) -> Answer<[(); 0]> {
    Ok(Reply([]))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DictEntry {
    dict_type: &'static str,
    value: &'static str,
    label: &'static str,
    color_type: &'static str,
    css_class: &'static str,
}

/// Labels of the chat pages: dictionary, value, label.
const LABELS: &[(&str, &str, &str)] = &[
    ("im_friend_add_source", "1", "搜索"),
    ("im_friend_add_source", "2", "群聊"),
    ("im_friend_add_source", "3", "二维码"),
    ("im_friend_add_source", "4", "名片"),
    ("im_friend_request_handle_result", "0", "待处理"),
    ("im_friend_request_handle_result", "1", "已同意"),
    ("im_friend_request_handle_result", "2", "已拒绝"),
    ("im_group_member_role", "1", "群主"),
    ("im_group_member_role", "2", "管理员"),
    ("im_group_member_role", "3", "成员"),
    ("im_rtc_call_media_type", "1", "语音"),
    ("im_rtc_call_media_type", "2", "视频"),
];

/// GET `/system/dict-data/simple-list`.
pub async fn dictionary(_: Caller) -> Answer<Vec<DictEntry>> {
    let entry = |&(dict_type, value, label): &(&'static str, &'static str, &'static str)| DictEntry {
        dict_type,
        value,
        label,
        color_type: "default",
        css_class: "",
    };
    Ok(Reply(LABELS.iter().map(entry).collect()))
}
