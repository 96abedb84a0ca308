//! The route table, and what unknown paths and wrong methods are answered with.

use actix_web::middleware::from_fn;
use actix_web::web::{self, ServiceConfig, delete, get, post, put};
use actix_web::{HttpRequest, HttpResponse, Resource, Route};

use super::caller::{authenticate, demand_login};
use super::{
    auth, conversation_reads, friend_requests, friends, group_members, group_messages, group_requests, groups, health,
    lookups, private_messages, server_api, sessions, sync, users, ws,
};
use crate::error::AppError;

/// Everything that the main port serves.
pub fn routes(config: &mut ServiceConfig) {
    config
        .service(at("/healthz", get().to(health::healthz)))
        .service(at("/readyz", get().to(health::readyz)))
        .service(at("/metrics", get().to(health::metrics_for_loopback)))
        .service(at("/infra/ws", get().to(ws::open)))
        .service(web::scope("/admin-api/system").configure(system))
        .service(web::scope("/admin-api/im").wrap(from_fn(demand_login)).configure(im))
        .service(web::scope("/api/v1").configure(server))
        .default_service(web::to(unknown_path));
}

/// What the metrics address serves.
pub fn metrics_routes(config: &mut ServiceConfig) {
    config.service(at("/metrics", get().to(health::metrics)));
}

fn system(config: &mut ServiceConfig) {
    config
        .service(at("/auth/register", post().to(auth::register)))
        .service(at("/auth/login", post().to(auth::login)))
        .service(at("/auth/logout", post().to(auth::logout)))
        .service(at("/auth/refresh-token", post().to(auth::refresh)))
        .service(at("/tenant/get-by-website", get().to(lookups::tenant_by_website)))
        .service(at("/tenant/get-id-by-name", get().to(lookups::tenant_id_by_name)))
        .service(at("/tenant/simple-list", get().to(lookups::tenants)))
        .service(web::scope("").wrap(from_fn(demand_login)).configure(signed_in));
}

/// What else `/admin-api/system` has, for those who are signed in.
fn signed_in(config: &mut ServiceConfig) {
    config
        .service(at("/auth/get-permission-info", get().to(auth::permission_info)))
        .service(at("/dict-data/simple-list", get().to(lookups::dictionary)))
        .service(at("/notify-message/get-unread-count", get().to(lookups::unread_notice_count)))
        .service(at("/notify-message/get-unread-list", get().to(lookups::unread_notices)))
        .service(at("/user/get-simple", get().to(users::get_simple)))
        .service(at("/user/list-by-nickname", get().to(users::search)))
        .service(at("/user/profile/get", get().to(users::get_profile)))
        .service(at("/user/profile/update", put().to(users::update_profile)))
        .service(at("/user/profile/update-password", put().to(users::update_password)));
}

fn im(config: &mut ServiceConfig) {
    config
        .service(at("/message/private/send", post().to(private_messages::send)))
        .service(at("/message/private/pull", get().to(private_messages::pull)))
        .service(at("/message/private/list", get().to(private_messages::list)))
        .service(at("/message/private/read", put().to(private_messages::read)))
        .service(at("/message/private/max-read-message-id", get().to(private_messages::max_read_message_id)))
        .service(at("/message/private/recall", delete().to(private_messages::recall)))
        .service(at("/message/private/typing", put().to(private_messages::typing)))
        .service(at("/conversation-read/pull", get().to(conversation_reads::pull)))
        .service(at("/friend/list", get().to(friends::list)))
        .service(at("/friend/pull", get().to(friends::pull)))
        .service(at("/friend/get", get().to(friends::get)))
        .service(at("/friend/delete", delete().to(friends::delete)))
        .service(at("/friend/update", put().to(friends::update)))
        .service(at("/friend/block", put().to(friends::block)))
        .service(at("/friend/unblock", put().to(friends::unblock)))
        .service(at("/friend-request/apply", post().to(friend_requests::apply)))
        .service(at("/friend-request/agree", put().to(friend_requests::agree)))
        .service(at("/friend-request/refuse", put().to(friend_requests::refuse)))
        .service(at("/friend-request/list", get().to(friend_requests::list)))
        .service(at("/friend-request/pull", get().to(friend_requests::pull)))
        .service(at("/friend-request/get", get().to(friend_requests::get)))
        .service(at("/message/group/send", post().to(group_messages::send)))
        .service(at("/message/group/pull", get().to(group_messages::pull)))
        .service(at("/message/group/list", get().to(group_messages::list)))
        .service(at("/message/group/read", put().to(group_messages::read)))
        .service(at("/message/group/get-read-user-ids", get().to(group_messages::read_user_ids)))
        .service(at("/message/group/recall", delete().to(group_messages::recall)))
        .service(at("/message/group/typing", put().to(group_messages::typing)))
        .service(at("/group/create", post().to(groups::create)))
        .service(at("/group/update", put().to(groups::update)))
        .service(at("/group/dissolve", delete().to(groups::dissolve)))
        .service(at("/group/get", get().to(groups::get)))
        .service(at("/group/list", get().to(groups::list)))
        .service(at("/group/invite", post().to(groups::invite)))
        .service(at("/group/quit", delete().to(groups::quit)))
        .service(at("/group/kicking", delete().to(groups::kick)))
        .service(at("/group/add-admin", put().to(groups::add_admins)))
        .service(at("/group/remove-admin", put().to(groups::remove_admins)))
        .service(at("/group/transfer-owner", put().to(groups::transfer_owner)))
        .service(at("/group/pin-message", put().to(groups::pin_message)))
        .service(at("/group/unpin-message", put().to(groups::unpin_message)))
        .service(at("/group/mute-all", put().to(groups::mute_all)))
        .service(at("/group/mute-member", put().to(groups::mute_member)))
        .service(at("/group/cancel-mute-member", put().to(groups::cancel_mute_member)))
        .service(at("/group-member/update", put().to(group_members::update)))
        .service(at("/group-member/get", get().to(group_members::get)))
        .service(at("/group-member/list", get().to(group_members::list)))
        .service(at("/group-request/apply", post().to(group_requests::apply)))
        .service(at("/group-request/agree", put().to(group_requests::agree)))
        .service(at("/group-request/refuse", put().to(group_requests::refuse)))
        .service(at("/group-request/unhandled-list", get().to(group_requests::unhandled)))
        .service(at("/group-request/pull", get().to(group_requests::pull)))
        .service(at("/group-request/list-by-group", get().to(group_requests::list_by_group)))
        .service(at("/group-request/get", get().to(group_requests::get)))
        .service(at("/sync", post().to(sync::sync)))
        .service(at("/unread", post().to(sync::unread)))
        .service(at("/session/list", get().to(sessions::list)))
        .service(at("/session/close", delete().to(sessions::close)));
}

fn server(config: &mut ServiceConfig) {
    config
        .service(at("/users", post().to(server_api::upsert_users)))
        .service(at("/users/status", put().to(server_api::set_status)))
        .service(at("/tokens", post().to(server_api::issue_tokens)));
}

/// One path with one method; any other method gets code 405.
fn at(path: &str, route: Route) -> Resource {
    web::resource(path).route(route).default_service(web::to(wrong_method))
}

async fn wrong_method() -> Result<HttpResponse, AppError> {
    Err(AppError::MethodNotAllowed)
}

/// Code 404 for those who are signed in, 401 for others, who need not know which paths exist.
async fn unknown_path(request: HttpRequest) -> Result<HttpResponse, AppError> {
    authenticate(&request).await?;
    Err(AppError::NoSuchPath)
}
