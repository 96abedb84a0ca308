//! The endpoints of operators (`contract/05` part E): everything below `/im/manager`, and the permission of each. Reads
//! run on a connection of their own, so that an operator's long page never delays a user's pull.

mod friends;
mod groups;
mod menus;
mod messages;
mod page;
mod statistics;
mod words;

pub use menus::{Menu, menus};

use actix_web::Route;
use actix_web::middleware::from_fn;
use actix_web::web::{delete, get, post, put};

use super::permission::demand_permission;

/// One path with its one method and the permission that it asks for.
pub struct ManagerEndpoint {
    /// In lower case.
    pub method: &'static str,
    /// Below `/admin-api/im`.
    pub path: &'static str,
    permission: &'static str,
    route: fn() -> Route,
}

macro_rules! endpoints {
    ($($method:ident $path:literal, $permission:literal => $handler:path,)+) => {
        &[$(ManagerEndpoint {
            method: stringify!($method),
            path: $path,
            permission: $permission,
            route: || $method().to($handler),
        }),+]
    };
}

pub const MANAGER: &[ManagerEndpoint] = endpoints! {
    get "/manager/friend/page", "im:manager:friend:query" => friends::page,
    get "/manager/friend-request/page", "im:manager:friend-request:query" => friends::request_page,
    get "/manager/group/page", "im:manager:group:query" => groups::page,
    get "/manager/group/get", "im:manager:group:query" => groups::get_one,
    put "/manager/group/ban", "im:manager:group:ban" => groups::ban,
    put "/manager/group/unban", "im:manager:group:ban" => groups::unban,
    delete "/manager/group/dissolve", "im:manager:group:dissolve" => groups::dissolve,
    get "/manager/group/member/list", "im:manager:group:query" => groups::members,
    get "/manager/group-request/page", "im:manager:group-request:query" => groups::request_page,
    get "/manager/message/private/page", "im:manager:message:query" => messages::private_page,
    get "/manager/message/private/get", "im:manager:message:query" => messages::get_private,
    get "/manager/message/group/page", "im:manager:message:query" => messages::group_page,
    get "/manager/message/group/get", "im:manager:message:query" => messages::get_group,
    post "/manager/sensitive-word/create", "im:manager:sensitive-word:create" => words::create,
    put "/manager/sensitive-word/update", "im:manager:sensitive-word:update" => words::update,
    delete "/manager/sensitive-word/delete", "im:manager:sensitive-word:delete" => words::delete_one,
    delete "/manager/sensitive-word/delete-list", "im:manager:sensitive-word:delete" => words::delete_list,
    get "/manager/sensitive-word/page", "im:manager:sensitive-word:query" => words::page,
    get "/manager/sensitive-word/get", "im:manager:sensitive-word:query" => words::get_one,
    get "/manager/statistics/overview", "im:manager:statistics:query" => statistics::overview,
    get "/manager/statistics/message-trend", "im:manager:statistics:query" => statistics::message_trend,
    get "/manager/statistics/user-trend", "im:manager:statistics:query" => statistics::user_trend,
    get "/manager/statistics/message-type-distribution", "im:manager:statistics:query" => statistics::message_types,
    get "/manager/statistics/group-size-distribution", "im:manager:statistics:query" => statistics::group_sizes,
    get "/manager/statistics/top-senders", "im:manager:statistics:query" => statistics::top_senders,
};

impl ManagerEndpoint {
    /// Its route, behind the check of its permission.
    pub fn guarded(&self) -> Route {
        let permission = self.permission;
        (self.route)().wrap(from_fn(move |request, next| demand_permission(permission, request, next)))
    }
}
