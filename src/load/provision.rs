//! The people of a run: accounts, sign-ins, friendships and groups, made by ordinary requests. Every run makes its own.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use anyhow::{Context, bail};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use rand::rngs::StdRng;
use rand::seq::index::sample;

use super::scenario::Plan;
use crate::client::{Api, Backoff, ClientError, Endpoint, NewUser, Tokens};
use crate::domain::ids::{GroupId, UserId};

/// Accounts in one call of the server API, which takes 1,000.
const IMPORT: usize = 500;
/// Sign-ups at one time: the server hashes two passwords at a time.
const PARALLEL_SIGN_UPS: usize = 8;
/// Friendships under way; a user may have 64 commands waiting.
const PARALLEL_FRIENDSHIPS: usize = 32;
/// Tries of a request that a busy server refused.
const TRIES: u32 = 8;
const BACKOFF: Backoff =
    Backoff { base: Duration::from_millis(50), max: Duration::from_secs(2), jitter: Duration::from_millis(50) };

/// Somebody with a sign-in for each device.
#[derive(Debug)]
pub struct Person {
    pub id: UserId,
    pub logins: Vec<Tokens>,
}

/// A group of this run; `members` are indices of people.
#[derive(Debug)]
pub struct Group {
    pub id: GroupId,
    pub members: Vec<usize>,
}

/// Who there is and who knows whom. Nothing of it changes during a run.
#[derive(Debug)]
pub struct Society {
    pub people: Vec<Person>,
    /// Friends who chat.
    pub pairs: Vec<(usize, usize)>,
    pub groups: Vec<Group>,
}

impl Society {
    /// The members of each group, for the ledger.
    pub fn members(&self) -> HashMap<GroupId, HashSet<UserId>> {
        let id_of = |index: &usize| self.people.get(*index).map(|person| person.id);
        self.groups.iter().map(|group| (group.id, group.members.iter().filter_map(id_of).collect())).collect()
    }

    /// The groups of a person.
    pub fn groups_of(&self, index: usize) -> Vec<GroupId> {
        self.groups.iter().filter(|group| group.members.contains(&index)).map(|group| group.id).collect()
    }
}

/// Makes the people of a run. `run` is in their names.
///
/// # Errors
/// The server refuses, or does not answer.
pub async fn provision(
    endpoint: &Endpoint,
    plan: &Plan,
    api_key: Option<&str>,
    run: u64,
    random: &mut StdRng,
) -> anyhow::Result<Society> {
    let people = match api_key {
        Some(key) => import(endpoint, plan, key, run).await.context("the server API refuses")?,
        None => sign_up(endpoint, plan, run).await?,
    };
    let pairs = ring(plan.users, plan.friends);
    let drafts: Vec<Vec<usize>> =
        (0..plan.groups).map(|_| sample(random, plan.users, plan.group_size).into_vec()).collect();
    let mut friendships: BTreeSet<(usize, usize)> = pairs.iter().copied().map(ordered).collect();
    for members in &drafts {
        if let [owner, others @ ..] = members.as_slice() {
            friendships.extend(others.iter().map(|other| ordered((*owner, *other))));
        }
    }
    let apis: Vec<Api> = people.iter().filter_map(|person| first_api(endpoint, person)).collect();
    befriend_all(&apis, friendships).await.context("friendships cannot be made")?;
    let groups = create_groups(&apis, &people, drafts).await.context("groups cannot be made")?;
    Ok(Society { people, pairs, groups })
}

fn first_api(endpoint: &Endpoint, person: &Person) -> Option<Api> {
    person.logins.first().map(|tokens| Api::new(endpoint.clone(), tokens.clone()))
}

fn ordered((a, b): (usize, usize)) -> (usize, usize) {
    (a.min(b), a.max(b))
}

/// Everybody knows the next few people in a ring, so all have the same number of friends (one less where it is odd).
fn ring(people: usize, friends: usize) -> Vec<(usize, usize)> {
    let mut pairs = BTreeSet::new();
    for step in 1..=friends.div_ceil(2) {
        pairs.extend((0..people).map(|person| ordered((person, (person + step) % people))));
    }
    pairs.into_iter().filter(|(a, b)| a != b).collect()
}

async fn import(endpoint: &Endpoint, plan: &Plan, key: &str, run: u64) -> Result<Vec<Person>, ClientError> {
    let ids: Vec<String> = (0..plan.users).map(|number| format!("load-{run:016x}-{number}")).collect();
    let mut people = Vec::with_capacity(ids.len());
    for chunk in ids.chunks(IMPORT) {
        let new = |id: &String| NewUser { external_id: id.clone(), nickname: "load".to_owned(), avatar: None };
        let users: Vec<NewUser> = chunk.iter().map(new).collect();
        let made = repeat(async || endpoint.import_users(key, &users).await).await?;
        let from = people.len();
        people.extend(made.into_iter().map(|user| Person { id: user.user_id, logins: Vec::new() }));
        let names: Vec<&str> = chunk.iter().map(String::as_str).collect();
        for _ in 0..plan.devices {
            let logins = repeat(async || endpoint.import_tokens(key, &names).await).await?;
            for (person, login) in people.iter_mut().skip(from).zip(logins) {
                person.logins.push(login.tokens);
            }
        }
    }
    Ok(people)
}

async fn sign_up(endpoint: &Endpoint, plan: &Plan, run: u64) -> anyhow::Result<Vec<Person>> {
    let sign_ups = (0..plan.users).map(|number| sign_up_one(endpoint, plan.devices, run, number));
    let people = stream::iter(sign_ups).buffered(PARALLEL_SIGN_UPS).try_collect().await;
    match people {
        Err(error @ ClientError::Refused { .. }) => {
            bail!("{error} (where registration is closed, give the server's key: --api-key)")
        }
        people => people.context("users cannot be registered"),
    }
}

async fn sign_up_one(endpoint: &Endpoint, devices: usize, run: u64, number: usize) -> Result<Person, ClientError> {
    let (name, password) = (format!("l{run:016x}x{number}"), "load-password");
    let first = repeat(async || endpoint.register(&name, "load", password).await).await?;
    let mut person = Person { id: first.user_id, logins: vec![first] };
    for _ in 1..devices {
        person.logins.push(repeat(async || endpoint.login(&name, password).await).await?);
    }
    Ok(person)
}

async fn befriend_all(apis: &[Api], friendships: BTreeSet<(usize, usize)>) -> Result<(), ClientError> {
    let befriendings = friendships.into_iter().filter_map(|(a, b)| Some(befriend(apis.get(a)?, apis.get(b)?)));
    stream::iter(befriendings).buffer_unordered(PARALLEL_FRIENDSHIPS).try_collect().await
}

async fn befriend(a: &Api, b: &Api) -> Result<(), ClientError> {
    let request = repeat(async || a.apply_friend(b.user_id(), "load").await).await?;
    match request {
        Some(request) => repeat(async || b.agree_friend(request).await).await,
        None => Ok(()),
    }
}

async fn create_groups(apis: &[Api], people: &[Person], drafts: Vec<Vec<usize>>) -> Result<Vec<Group>, ClientError> {
    let mut groups = Vec::with_capacity(drafts.len());
    for members in drafts {
        let [owner, others @ ..] = members.as_slice() else { continue };
        let Some(owner) = apis.get(*owner) else { continue };
        let ids: Vec<UserId> = others.iter().filter_map(|index| people.get(*index)).map(|person| person.id).collect();
        let id = repeat(async || owner.create_group("load", &ids).await).await?;
        groups.push(Group { id, members });
    }
    Ok(groups)
}

/// Repeats what a busy server refused or did not answer. Making a group twice leaves an unused one.
async fn repeat<T>(call: impl AsyncFn() -> Result<T, ClientError>) -> Result<T, ClientError> {
    let mut attempt = 0;
    loop {
        match call().await {
            Err(error) if error.is_temporary() && attempt < TRIES => {
                tokio::time::sleep(BACKOFF.random_delay(attempt)).await;
                attempt += 1;
            }
            answer => return answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(2, 1, 1)]
    #[case(3, 2, 3)]
    #[case(10, 4, 20)]
    #[case(10, 9, 45)]
    #[case(5, 0, 0)]
    fn a_ring_of_friends(#[case] people: usize, #[case] friends: usize, #[case] pairs: usize) {
        let ring = ring(people, friends);
        assert_eq!(ring.len(), pairs, "{ring:?}");
        assert!(ring.iter().all(|(a, b)| a < b && *b < people));
    }
}
