//! The route table, and what unknown paths and wrong methods are answered with.

use actix_web::middleware::from_fn;
use actix_web::web::{self, ServiceConfig, delete, get, head, post, put};
use actix_web::{HttpRequest, HttpResponse, Resource, Route};

use super::caller::{authenticate, demand_login};
use super::manager::MANAGER;
use super::{
    auth, conversation_reads, file_answers, files, friend_requests, friends, group_members, group_messages,
    group_requests, groups, health, lookups, private_messages, server_api, sessions, sync, users, web as chat, ws,
};
use crate::error::AppError;

/// Everything that the main port serves.
pub fn routes(config: &mut ServiceConfig) {
    config
        .service(at("/healthz", get().to(health::healthz)))
        .service(at("/readyz", get().to(health::readyz)))
        .service(at("/metrics", get().to(health::metrics_for_loopback)))
        .service(at("/infra/ws", get().to(ws::open)))
        .service(at("/", get().to(chat::page)).route(head().to(chat::page)))
        .service(at("/assets/{path:.*}", get().to(chat::asset)).route(head().to(chat::asset)))
        .service(web::scope("/admin-api/system").configure(system))
        .service(web::scope("/admin-api/im").wrap(from_fn(demand_login)).configure(im))
        .service(web::scope("/admin-api/infra/file").configure(file_bytes).configure(file_records))
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

/// What of `/admin-api/infra/file` is no JSON.
fn file_bytes(config: &mut ServiceConfig) {
    let download = web::resource("/{config}/get/{path:.*}")
        .route(get().to(file_answers::download))
        .route(head().to(file_answers::download))
        .default_service(web::to(wrong_method));
    config.service(download).service(at("/upload", post().to(files::upload)));
}

/// What else `/admin-api/infra/file` has.
fn file_records(config: &mut ServiceConfig) {
    config.service(at("/presigned-url", get().to(files::presign))).service(at("/create", post().to(files::create)));
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

/// One path with its one method.
struct Endpoint {
    /// In lower case.
    method: &'static str,
    /// Below `/admin-api/im`.
    path: &'static str,
    route: fn() -> Route,
}

macro_rules! endpoints {
    ($($method:ident $path:literal => $handler:path,)+) => {
        &[$(Endpoint { method: stringify!($method), path: $path, route: || $method().to($handler) }),+]
    };
}

const IM: &[Endpoint] = endpoints! {
    post "/message/private/send" => private_messages::send,
    get "/message/private/pull" => private_messages::pull,
    get "/message/private/list" => private_messages::list,
    put "/message/private/read" => private_messages::read,
    get "/message/private/max-read-message-id" => private_messages::max_read_message_id,
    delete "/message/private/recall" => private_messages::recall,
    put "/message/private/typing" => private_messages::typing,
    get "/conversation-read/pull" => conversation_reads::pull,
    get "/friend/list" => friends::list,
    get "/friend/pull" => friends::pull,
    get "/friend/get" => friends::get,
    delete "/friend/delete" => friends::delete,
    put "/friend/update" => friends::update,
    put "/friend/block" => friends::block,
    put "/friend/unblock" => friends::unblock,
    post "/friend-request/apply" => friend_requests::apply,
    put "/friend-request/agree" => friend_requests::agree,
    put "/friend-request/refuse" => friend_requests::refuse,
    get "/friend-request/list" => friend_requests::list,
    get "/friend-request/pull" => friend_requests::pull,
    get "/friend-request/get" => friend_requests::get,
    post "/message/group/send" => group_messages::send,
    get "/message/group/pull" => group_messages::pull,
    get "/message/group/list" => group_messages::list,
    put "/message/group/read" => group_messages::read,
    get "/message/group/get-read-user-ids" => group_messages::read_user_ids,
    delete "/message/group/recall" => group_messages::recall,
    put "/message/group/typing" => group_messages::typing,
    post "/group/create" => groups::create,
    put "/group/update" => groups::update,
    delete "/group/dissolve" => groups::dissolve,
    get "/group/get" => groups::get,
    get "/group/list" => groups::list,
    post "/group/invite" => groups::invite,
    delete "/group/quit" => groups::quit,
    delete "/group/kicking" => groups::kick,
    put "/group/add-admin" => groups::add_admins,
    put "/group/remove-admin" => groups::remove_admins,
    put "/group/transfer-owner" => groups::transfer_owner,
    put "/group/pin-message" => groups::pin_message,
    put "/group/unpin-message" => groups::unpin_message,
    put "/group/mute-all" => groups::mute_all,
    put "/group/mute-member" => groups::mute_member,
    put "/group/cancel-mute-member" => groups::cancel_mute_member,
    put "/group-member/update" => group_members::update,
    get "/group-member/get" => group_members::get,
    get "/group-member/list" => group_members::list,
    post "/group-request/apply" => group_requests::apply,
    put "/group-request/agree" => group_requests::agree,
    put "/group-request/refuse" => group_requests::refuse,
    get "/group-request/unhandled-list" => group_requests::unhandled,
    get "/group-request/pull" => group_requests::pull,
    get "/group-request/list-by-group" => group_requests::list_by_group,
    get "/group-request/get" => group_requests::get,
    post "/sync" => sync::sync,
    post "/unread" => sync::unread,
    get "/session/list" => sessions::list,
    delete "/session/close" => sessions::close,
};

/// Method and path of everything below `/admin-api/im`, so that a test can ask of each what it shows to whom.
pub fn im_endpoints() -> impl Iterator<Item = (&'static str, &'static str)> {
    let manager = MANAGER.iter().map(|endpoint| (endpoint.method, endpoint.path));
    IM.iter().map(|endpoint| (endpoint.method, endpoint.path)).chain(manager)
}

fn im(config: &mut ServiceConfig) {
    for endpoint in IM {
        config.service(at(endpoint.path, (endpoint.route)()));
    }
    for endpoint in MANAGER {
        config.service(at(endpoint.path, endpoint.guarded()));
    }
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
pub(super) async fn unknown_path(request: HttpRequest) -> Result<HttpResponse, AppError> {
    authenticate(&request).await?;
    Err(AppError::NoSuchPath)
}
