//! The menus of the management pages (`contract/05` E9), from which the web client builds its sidebar. Whoever may read
//! what a page shows sees the page; pages of endpoints that this server does not have are left out.

use serde::Serialize;

use super::MANAGER;
use crate::service::permissions::Permissions;

/// An entry: a directory, or a page of the web client.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Menu {
    id: i64,
    parent_id: i64,
    name: &'static str,
    path: &'static str,
    component: Option<&'static str>,
    component_name: Option<&'static str>,
    icon: &'static str,
    visible: bool,
    keep_alive: bool,
    always_show: bool,
    children: Option<Vec<Menu>>,
}

/// What an entry leads to.
enum Target {
    Directory,
    /// A page: component and its name, the endpoint that fills it, and permissions of which any opens it.
    Page(&'static str, &'static str, &'static str, &'static [&'static str]),
}
use Target::{Directory, Page};

struct Entry {
    id: i64,
    parent: i64,
    path: &'static str,
    name: &'static str,
    target: Target,
}

const fn directory(id: i64, parent: i64, path: &'static str, name: &'static str) -> Entry {
    Entry { id, parent, path, name, target: Directory }
}

const fn page(id: i64, parent: i64, path: &'static str, name: &'static str, target: Target) -> Entry {
    Entry { id, parent, path, name, target }
}

/// In the order in which they are shown. Labels are in the language of the web client.
const ENTRIES: &[Entry] = &[
    directory(6500, 0, "/im", "即时通讯"),
    page(
        6510,
        6500,
        "statistics",
        "统计",
        Page(
            "im/manager/statistics/index",
            "ImStatistics",
            "/manager/statistics/overview",
            &["im:manager:statistics:query"],
        ),
    ),
    directory(6600, 6500, "private", "私聊"),
    page(
        6520,
        6600,
        "friend",
        "好友",
        Page(
            "im/manager/friend/index",
            "ImFriend",
            "/manager/friend/page",
            &["im:manager:friend:list", "im:manager:friend:query"],
        ),
    ),
    page(
        6515,
        6600,
        "friend-request",
        "好友申请",
        Page(
            "im/manager/friend/request/index",
            "ImFriendRequest",
            "/manager/friend-request/page",
            &["im:manager:friend-request:query"],
        ),
    ),
    page(
        6530,
        6600,
        "message",
        "私聊消息",
        Page(
            "im/manager/message/private/index",
            "ImPrivateMessage",
            "/manager/message/private/page",
            &["im:manager:message:private:list", "im:manager:message:query"],
        ),
    ),
    directory(6610, 6500, "group", "群聊"),
    page(
        6540,
        6610,
        "list",
        "群",
        Page(
            "im/manager/group/index",
            "ImGroup",
            "/manager/group/page",
            &["im:manager:group:list", "im:manager:group:query"],
        ),
    ),
    page(
        6545,
        6610,
        "request",
        "加群申请",
        Page(
            "im/manager/group/request/index",
            "ImGroupRequest",
            "/manager/group-request/page",
            &["im:manager:group-request:query"],
        ),
    ),
    page(
        6550,
        6610,
        "message",
        "群聊消息",
        Page(
            "im/manager/message/group/index",
            "ImGroupMessage",
            "/manager/message/group/page",
            &["im:manager:message:group:list", "im:manager:message:query"],
        ),
    ),
    page(
        6611,
        6500,
        "rtc",
        "通话",
        Page("im/manager/rtc/index", "ImRtcCall", "/manager/rtc/page", &["im:manager:rtc:query"]),
    ),
    page(
        6560,
        6500,
        "sensitive-word",
        "敏感词",
        Page(
            "im/manager/sensitiveword/index",
            "ImSensitiveWord",
            "/manager/sensitive-word/page",
            &["im:manager:sensitive-word:list", "im:manager:sensitive-word:query"],
        ),
    ),
    directory(6570, 6500, "face", "表情"),
    page(
        6571,
        6570,
        "pack",
        "表情包",
        Page(
            "im/manager/face/pack/index",
            "ImManagerFacePack",
            "/manager/face-pack/page",
            &["im:manager:face-pack:list", "im:manager:face-pack:query"],
        ),
    ),
    page(
        6580,
        6570,
        "user-item",
        "用户表情",
        Page(
            "im/manager/face/userItem/index",
            "ImManagerFaceUserItem",
            "/manager/face-user-item/page",
            &["im:manager:face-user-item:list", "im:manager:face-user-item:query"],
        ),
    ),
    directory(6700, 6500, "channel", "频道"),
    page(
        6710,
        6700,
        "list",
        "频道",
        Page("im/manager/channel/list/index", "ImChannel", "/manager/channel/page", &["im:manager:channel:query"]),
    ),
    page(
        6720,
        6700,
        "material",
        "素材",
        Page(
            "im/manager/channel/material/index",
            "ImChannelMaterial",
            "/manager/channel-material/page",
            &["im:manager:channel-material:query"],
        ),
    ),
    page(
        6730,
        6700,
        "message",
        "频道消息",
        Page(
            "im/manager/channel/message/index",
            "ImChannelMessage",
            "/manager/channel-message/page",
            &["im:manager:channel-message:query"],
        ),
    ),
];

/// The menus of an operator; none for a user who is no operator.
pub fn menus(held: &Permissions) -> Vec<Menu> {
    let is_served = |path: &str| MANAGER.iter().any(|endpoint| endpoint.path == path);
    below(0, held, &is_served)
}

fn below(parent: i64, held: &Permissions, is_served: &impl Fn(&str) -> bool) -> Vec<Menu> {
    ENTRIES.iter().filter(|entry| entry.parent == parent).filter_map(|entry| show(entry, held, is_served)).collect()
}

fn show(entry: &Entry, held: &Permissions, is_served: &impl Fn(&str) -> bool) -> Option<Menu> {
    let (component, component_name, children) = match entry.target {
        Directory => (None, None, Some(below(entry.id, held, is_served)).filter(|children| !children.is_empty())),
        Page(component, name, _, _) => (Some(component), Some(name), None),
    };
    let is_open = match entry.target {
        Directory => children.is_some(),
        Page(_, _, endpoint, keys) => is_served(endpoint) && keys.iter().any(|key| held.holds(key)),
    };
    is_open.then_some(Menu {
        id: entry.id,
        parent_id: entry.parent,
        name: entry.name,
        path: entry.path,
        component,
        component_name,
        icon: if entry.parent == 0 { "ep:chat-dot-round" } else { "" },
        visible: true,
        keep_alive: true,
        always_show: true,
        children,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::domain::permission::{EVERYTHING, KEYS};

    fn ids(menus: &[Menu], found: &mut BTreeSet<i64>) {
        for menu in menus {
            found.insert(menu.id);
            ids(menu.children.as_deref().unwrap_or_default(), found);
        }
    }

    fn opened(held: &[&str]) -> BTreeSet<i64> {
        let held = Permissions::new(held.iter().map(|key| (*key).to_owned()).collect());
        let mut found = BTreeSet::new();
        ids(&below(0, &held, &|_| true), &mut found);
        found
    }

    #[test]
    fn the_super_admin_sees_every_page_and_nobody_else_any() {
        assert_eq!(opened(&[EVERYTHING]), ENTRIES.iter().map(|entry| entry.id).collect());
        assert_eq!(opened(&[]), BTreeSet::new());
        assert_eq!(opened(&["im:manager:group:ban"]), BTreeSet::new(), "a ban alone shows no list");
    }

    #[test]
    fn a_permission_opens_its_page_and_the_directories_above() {
        assert_eq!(opened(&["im:manager:group:query"]), BTreeSet::from([6500, 6610, 6540]));
        assert_eq!(opened(&["im:manager:channel-message:query"]), BTreeSet::from([6500, 6700, 6730]));
    }

    #[test]
    fn pages_ask_for_permissions_that_exist_and_replace_no_page_of_the_chat() {
        for entry in ENTRIES {
            if let Page(_, name, _, keys) = entry.target {
                assert!(keys.iter().all(|key| KEYS.contains(key)), "{keys:?}");
                assert!(!["Im", "ImHome", "ImHomeConversation", "ImHomeContact"].contains(&name));
            }
            assert!(entry.parent == 0 || ENTRIES.iter().any(|other| other.id == entry.parent));
        }
    }
}
