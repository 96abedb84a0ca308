//! Verbs of groups that run at the same time, on two servers of one database (SQLite: on one server): each happens once,
//! limits hold, and a membership is one unbroken span (field test B6; `design.md` section 5). `TEST_LONG=1` runs longer,
//! `TEST_SEED` repeats the choices of the random test, though not its timing.

use futures_util::future::join_all;
use nudge::config::Config;
use nudge::server::Server;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};

use crate::support::app::{Person, Setup, TestApp, befriend, start_server};
use crate::support::databases::{Backend, on_every_database};
use crate::support::direct::{is_long, seed};
use crate::support::groups::{
    ALREADY_MEMBER, Crew, GROUP_DISSOLVED, MEMBER_LIMIT, NOT_MEMBER, NOT_OWNER, REQUEST_HANDLED, check_spans, code,
    dissolve, group, invite, kick, make_group, pulled_after, put, quit, say,
};
use crate::support::second_connection::SecondConnection;

on_every_database! {
    of_concurrent_handlers_of_a_request_one_wins,
    a_new_owner_is_never_kicked_by_an_old_admin,
    invitations_of_two_servers_keep_the_member_limit,
    a_member_who_quits_and_is_kicked_leaves_once,
    a_group_is_dissolved_once,
    a_group_is_banned_once_and_its_ban_lifted_once,
    owner_and_operators_end_a_group_once,
    a_message_is_pinned_once,
    who_joins_many_times_at_once_is_one_member,
    comings_and_goings_leave_whole_spans,
}

const ALREADY_PINNED: i64 = 1_040_400_007;
const PIN_LIMIT: i64 = 1_040_400_006;
const CANNOT_KICK_OWNER: i64 = 1_040_500_010;

/// Two servers on one database; on SQLite, which takes no second server, one.
struct Pair {
    app: TestApp,
    second: Option<Server>,
}

impl Pair {
    async fn start(backend: Backend, config: Config) -> Pair {
        let app = TestApp::start_with(backend, Setup { config: config.clone(), ..Setup::default() }).await;
        let second = match backend {
            Backend::Sqlite => None,
            _ => Some(start_server(&app.database.url, Setup { config, ..Setup::default() }).await),
        };
        Pair { app, second }
    }

    /// A person on the first server or on the second, in turn.
    fn at(&self, person: &Person, turn: usize) -> Person {
        match &self.second {
            Some(second) if turn % 2 == 1 => person.on(&format!("http://{}", second.address())),
            _ => person.clone(),
        }
    }

    async fn finish(self) {
        check_spans(&self.app.database.url).await;
    }
}

fn rounds() -> usize {
    if is_long() { 40 } else { 3 }
}

fn how_many(codes: &[i64], code: i64) -> usize {
    codes.iter().filter(|found| **found == code).count()
}

/// The newest id of a group message, which is a marker of the test's own.
async fn mark(person: &Person, group: i64) -> i64 {
    say(person, group, "mark").await
}

async fn of_concurrent_handlers_of_a_request_one_wins(backend: Backend) {
    let pair = Pair::start(backend, Config::default()).await;
    let crew = Crew::gather(&pair.app).await;
    put(&crew.owner, "/im/group/update", json!({"id": crew.group, "joinApproval": true})).await;
    for round in 0..rounds() {
        let id = crew.outsider.post("/im/group-request/apply", json!({"groupId": crew.group})).await.as_i64().unwrap();
        let before = mark(&crew.owner, crew.group).await;
        let verbs = ["agree", "agree", "refuse", "agree", "agree", "refuse"];
        let calls = verbs.iter().enumerate().map(|(turn, verb)| {
            let handler = pair.at(if turn % 3 == 0 { &crew.owner } else { &crew.admin }, turn + round);
            async move { code(&handler, "PUT", &format!("/im/group-request/{verb}?id={id}"), Value::Null).await }
        });
        let codes = join_all(calls).await;
        assert_eq!((how_many(&codes, 0), how_many(&codes, REQUEST_HANDLED)), (1, 5), "{codes:?}");
        let agreed = verbs[codes.iter().position(|code| *code == 0).unwrap()] == "agree";
        let expected = if agreed { vec![1510] } else { vec![] };
        assert_eq!(pulled_after(&crew.owner, before).await, expected);
        let row = crew.owner.get(&format!("/im/group-request/get?id={id}")).await;
        assert_eq!(row["handleResult"], if agreed { 1 } else { 2 });
        assert_eq!(group(&crew.outsider, crew.group).await["joinStatus"], i32::from(!agreed));
        assert_eq!(kick(&crew.owner, crew.group, &[crew.outsider.id]).await, 0);
    }
    pair.finish().await;
}

async fn a_new_owner_is_never_kicked_by_an_old_admin(backend: Backend) {
    let pair = Pair::start(backend, Config::default()).await;
    for round in 0..rounds() {
        let crew = Crew::gather(&pair.app).await;
        let transfer = async {
            let owner = pair.at(&crew.owner, round);
            let body = json!({"id": crew.group, "newOwnerUserId": crew.member.id});
            code(&owner, "PUT", "/im/group/transfer-owner", body).await
        };
        let (admin, target) = (pair.at(&crew.admin, round + 1), [crew.member.id]);
        let (transferred, kicked) = futures_util::future::join(transfer, kick(&admin, crew.group, &target)).await;
        let expected = [(0, CANNOT_KICK_OWNER), (NOT_MEMBER, 0)];
        assert!(expected.contains(&(transferred, kicked)), "{transferred} {kicked}");
        let owner = if transferred == 0 { &crew.member } else { &crew.owner };
        assert_eq!(group(owner, crew.group).await["ownerUserId"], owner.id);
        let mut tables = SecondConnection::open(&pair.app.database.url).await;
        let owners = format!("group_id = {} AND role = 1 AND status = 0", crew.group);
        assert_eq!(tables.count("im_group_member", &owners).await, 1);
        assert_eq!(tables.count("im_group_member", &format!("{owners} AND user_id = {}", owner.id)).await, 1);
    }
    pair.finish().await;
}

async fn invitations_of_two_servers_keep_the_member_limit(backend: Backend) {
    let mut config = Config::default();
    config.group.max_member = 5;
    let pair = Pair::start(backend, config).await;
    let owner = pair.app.user("owner").await;
    let mut friends = Vec::new();
    for number in 0..8 {
        let friend = pair.app.user(&format!("friend {number}")).await;
        befriend(&owner, &friend).await;
        friends.push(friend);
    }
    for round in 0..rounds() {
        let id = make_group(&owner, &[]).await;
        let joins = friends.iter().enumerate().map(|(turn, friend)| {
            let (owner, friend) = (pair.at(&owner, turn), pair.at(friend, turn));
            async move {
                match (turn + round) % 4 {
                    0 | 1 => invite(&owner, id, &[friend.id]).await,
                    _ => code(&friend, "POST", "/im/group-request/apply", json!({"groupId": id})).await,
                }
            }
        });
        let codes = join_all(joins).await;
        assert_eq!((how_many(&codes, 0), how_many(&codes, MEMBER_LIMIT)), (4, 4), "{codes:?}");
        let mut tables = SecondConnection::open(&pair.app.database.url).await;
        assert_eq!(tables.count("im_group_member", &format!("group_id = {id} AND status = 0")).await, 5);
    }
    pair.finish().await;
}

async fn a_member_who_quits_and_is_kicked_leaves_once(backend: Backend) {
    let pair = Pair::start(backend, Config::default()).await;
    let crew = Crew::gather(&pair.app).await;
    for round in 0..rounds() {
        let before = mark(&crew.owner, crew.group).await;
        let calls = (0..6).map(|turn| {
            let (owner, member) = (pair.at(&crew.owner, turn / 2), pair.at(&crew.member, turn / 2 + round));
            let (id, target) = (crew.group, crew.member.id);
            async move { if turn % 2 == 0 { quit(&member, id).await } else { kick(&owner, id, &[target]).await } }
        });
        let codes = join_all(calls).await;
        assert!(codes.iter().all(|code| [0, NOT_MEMBER].contains(code)), "{codes:?}");
        let events = pulled_after(&crew.owner, before).await;
        assert!(events == [1504] || events == [1508], "{events:?}");
        assert_eq!(pulled_after(&crew.member, before).await, events);
        assert_eq!(invite(&crew.owner, crew.group, &[crew.member.id]).await, 0);
    }
    pair.finish().await;
}

async fn a_group_is_dissolved_once(backend: Backend) {
    let pair = Pair::start(backend, Config::default()).await;
    let (owner, member) = pair.app.friends("owner", "member").await;
    for _ in 0..rounds() {
        let id = make_group(&owner, &[&member]).await;
        let before = mark(&owner, id).await;
        let calls = (0..6).map(|turn| {
            let owner = pair.at(&owner, turn);
            async move { dissolve(&owner, id).await }
        });
        let codes = join_all(calls).await;
        assert_eq!((how_many(&codes, 0), how_many(&codes, GROUP_DISSOLVED)), (1, 5), "{codes:?}");
        assert_eq!(pulled_after(&member, before).await, [1511]);
        assert_eq!(dissolve(&member, id).await, GROUP_DISSOLVED);
    }
    assert_eq!(dissolve(&member, make_group(&owner, &[&member]).await).await, NOT_OWNER);
    pair.finish().await;
}

async fn a_group_is_banned_once_and_its_ban_lifted_once(backend: Backend) {
    let pair = Pair::start(backend, Config::default()).await;
    let crew = Crew::gather(&pair.app).await;
    let operators = [pair.app.operator().await, pair.app.operator().await];
    let before = mark(&crew.owner, crew.group).await;
    let unban = format!("/im/manager/group/unban?id={}", crew.group);
    let mut expected = Vec::new();
    for _ in 0..rounds() {
        for (path, banned) in [("/im/manager/group/ban", true), (&unban, false)] {
            let body = if banned { json!({"id": crew.group, "reason": "spam"}) } else { Value::Null };
            let calls = (0..5).map(|turn| {
                let (operator, body) = (pair.at(&operators[turn % 2], turn / 2), body.clone());
                async move { code(&operator, "PUT", path, body).await }
            });
            assert_eq!(join_all(calls).await, [0; 5]);
            expected.push(1533);
            assert_eq!(pulled_after(&crew.owner, before).await, expected, "one event");
            assert_eq!(group(&crew.member, crew.group).await["banned"], banned);
        }
    }
    pair.finish().await;
}

async fn owner_and_operators_end_a_group_once(backend: Backend) {
    let pair = Pair::start(backend, Config::default()).await;
    let operator = pair.app.operator().await;
    for round in 0..rounds() {
        let crew = Crew::gather(&pair.app).await;
        let before = mark(&crew.owner, crew.group).await;
        let paths = ["/im/group/dissolve", "/im/manager/group/dissolve", "/im/manager/group/dissolve"];
        let calls = paths.iter().enumerate().map(|(turn, path)| {
            let by = pair.at(if turn == 0 { &crew.owner } else { &operator }, turn + round);
            async move { code(&by, "DELETE", &format!("{path}?id={}", crew.group), Value::Null).await }
        });
        let codes = join_all(calls).await;
        assert_eq!((how_many(&codes, 0), how_many(&codes, GROUP_DISSOLVED)), (1, 2), "{codes:?}");
        assert_eq!(pulled_after(&crew.member, before).await, [1511]);
    }
    pair.finish().await;
}

async fn a_message_is_pinned_once(backend: Backend) {
    let mut config = Config::default();
    config.group.pin_max_count = 3;
    let pair = Pair::start(backend, config).await;
    let crew = Crew::gather(&pair.app).await;
    let mut messages = Vec::new();
    for _ in 0..5 {
        messages.push(mark(&crew.owner, crew.group).await);
    }
    let pin = |person: Person, verb: &'static str, message: i64| {
        let body = json!({"id": crew.group, "messageId": message});
        async move { code(&person, "PUT", &format!("/im/group/{verb}-message"), body).await }
    };
    for _ in 0..rounds() {
        let before = mark(&crew.owner, crew.group).await;
        let same = (0..6).map(|turn| pin(pair.at(&crew.admin, turn), "pin", messages[0]));
        let codes = join_all(same).await;
        assert_eq!((how_many(&codes, 0), how_many(&codes, ALREADY_PINNED)), (1, 5), "{codes:?}");
        let others = messages[1..].iter().enumerate().map(|(turn, id)| pin(pair.at(&crew.owner, turn), "pin", *id));
        let codes = join_all(others).await;
        assert_eq!((how_many(&codes, 0), how_many(&codes, PIN_LIMIT)), (2, 2), "{codes:?}");
        let pinned = group(&crew.owner, crew.group).await["pinnedMessages"].as_array().unwrap().len();
        assert_eq!((pinned, pulled_after(&crew.member, before).await), (3, vec![1531; 3]));
        let unpins = messages.iter().chain(&messages).enumerate();
        let codes = join_all(unpins.map(|(turn, id)| pin(pair.at(&crew.admin, turn), "unpin", *id))).await;
        assert_eq!(how_many(&codes, 0), 3, "{codes:?}");
        assert_eq!(group(&crew.owner, crew.group).await["pinnedMessages"], Value::Null);
    }
    pair.finish().await;
}

async fn who_joins_many_times_at_once_is_one_member(backend: Backend) {
    let pair = Pair::start(backend, Config::default()).await;
    let crew = Crew::gather(&pair.app).await;
    for round in 0..rounds() {
        let before = mark(&crew.owner, crew.group).await;
        let calls = (0..6).map(|turn| {
            let (owner, joiner, id) = (pair.at(&crew.owner, turn), pair.at(&crew.outsider, turn / 2), crew.group);
            async move {
                match (turn + round) % 3 {
                    0 => invite(&owner, id, &[joiner.id]).await,
                    _ => code(&joiner, "POST", "/im/group-request/apply", json!({"groupId": id})).await,
                }
            }
        });
        let codes = join_all(calls).await;
        assert!(codes.iter().all(|code| [0, ALREADY_MEMBER].contains(code)), "{codes:?}");
        let events = pulled_after(&crew.outsider, before).await;
        assert!(events == [1509] || events == [1510], "{events:?}");
        assert_eq!(pulled_after(&crew.owner, before).await, events);
        assert_eq!(quit(&crew.outsider, crew.group).await, 0);
    }
    pair.finish().await;
}

/// Members come, go, speak and are kicked at random on both servers.
async fn comings_and_goings_leave_whole_spans(backend: Backend) {
    let mut config = Config::default();
    config.group.max_member = 5;
    let pair = Pair::start(backend, config).await;
    let crew = Crew::gather(&pair.app).await;
    let second = pair.app.user("second").await;
    befriend(&crew.owner, &second).await;
    let seed = seed();
    let players = [&crew.member, &crew.outsider, &second].into_iter().enumerate().map(|(number, player)| {
        let mut rng = StdRng::seed_from_u64(seed + number as u64);
        let (pair, crew) = (&pair, &crew);
        async move {
            for _ in 0..rounds() * 6 {
                let turn = rng.random_range(0..2);
                let (player, owner, id) = (pair.at(player, turn), pair.at(&crew.owner, turn + 1), crew.group);
                match rng.random_range(0..6) {
                    0 => quit(&player, id).await,
                    1 => kick(&owner, id, &[player.id]).await,
                    2 => invite(&owner, id, &[player.id, crew.member.id]).await,
                    3 => code(&player, "POST", "/im/group-request/apply", json!({"groupId": id})).await,
                    _ => {
                        let (speaks, kicked) = futures_util::future::join(
                            crate::support::groups::try_say(&player, id, "here"),
                            kick(&owner, id, &[player.id]),
                        )
                        .await;
                        crate::support::friends::code_of(&speaks).max(kicked)
                    }
                };
            }
        }
    });
    join_all(players).await;
    let mut tables = SecondConnection::open(&pair.app.database.url).await;
    // Whoever wrote something was a member when it was stored.
    let unseen = "SELECT COUNT(*) AS number FROM im_group_message m WHERE NOT EXISTS (SELECT 1 FROM \
        im_group_member_span s WHERE s.group_id = m.group_id AND s.user_id = m.sender_id AND s.from_id < m.id \
        AND m.id <= s.to_id)";
    assert_eq!(tables.number(unseen).await, 0, "somebody wrote who was no member");
    // Each stay began and ended with its one event.
    let group = crew.group;
    let left = tables.count("im_group_member_span", &format!("group_id = {group} AND to_id < 4503599627370496")).await;
    let goodbyes = tables.count("im_group_message", &format!("group_id = {group} AND type IN (1504, 1508)")).await;
    assert_eq!(left, goodbyes);
    assert!(left > 0, "nobody ever left");
    drop(tables);
    pair.finish().await;
}
