//! Permissions of operators: the keys that management endpoints ask for (`contract/05` part E). Users need none.

/// The role that holds every permission.
pub const SUPER_ADMIN: &str = "super_admin";
/// How [`SUPER_ADMIN`] is stored among a user's permissions.
pub const EVERYTHING: &str = "*:*:*";

/// Every key there is. The `:list` ones open pages of the web client and are asked for by no endpoint.
pub const KEYS: &[&str] = &[
    "im:manager:channel-material:create",
    "im:manager:channel-material:delete",
    "im:manager:channel-material:query",
    "im:manager:channel-material:update",
    "im:manager:channel-message:delete",
    "im:manager:channel-message:query",
    "im:manager:channel-message:send",
    "im:manager:channel:create",
    "im:manager:channel:delete",
    "im:manager:channel:query",
    "im:manager:channel:update",
    "im:manager:face-pack-item:create",
    "im:manager:face-pack-item:delete",
    "im:manager:face-pack-item:query",
    "im:manager:face-pack-item:update",
    "im:manager:face-pack:create",
    "im:manager:face-pack:delete",
    "im:manager:face-pack:list",
    "im:manager:face-pack:query",
    "im:manager:face-pack:update",
    "im:manager:face-user-item:delete",
    "im:manager:face-user-item:list",
    "im:manager:face-user-item:query",
    "im:manager:friend-request:query",
    "im:manager:friend:list",
    "im:manager:friend:query",
    "im:manager:group-request:query",
    "im:manager:group:ban",
    "im:manager:group:dissolve",
    "im:manager:group:list",
    "im:manager:group:query",
    "im:manager:message:group:list",
    "im:manager:message:private:list",
    "im:manager:message:query",
    "im:manager:rtc:query",
    "im:manager:sensitive-word:create",
    "im:manager:sensitive-word:delete",
    "im:manager:sensitive-word:list",
    "im:manager:sensitive-word:query",
    "im:manager:sensitive-word:update",
    "im:manager:statistics:query",
];

/// What an operator holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions(Vec<String>);

impl Permissions {
    /// From what is stored for a user.
    pub fn new(stored: Vec<String>) -> Permissions {
        Permissions(stored)
    }

    pub fn is_super_admin(&self) -> bool {
        self.0.iter().any(|held| held == EVERYTHING)
    }

    pub fn holds(&self, key: &str) -> bool {
        self.is_super_admin() || self.0.iter().any(|held| held == key)
    }

    /// The role codes that go with them.
    pub fn roles(&self) -> Vec<&'static str> {
        if self.is_super_admin() { vec![SUPER_ADMIN] } else { Vec::new() }
    }

    /// The keys that they amount to, in alphabetical order.
    pub fn keys(&self) -> Vec<&'static str> {
        KEYS.iter().copied().filter(|key| self.holds(key)).collect()
    }
}

/// What is stored for a key, or for the role, as an administrator writes it. `None` when there is no such key.
pub fn stored_form(name: &str) -> Option<&'static str> {
    if name == SUPER_ADMIN {
        return Some(EVERYTHING);
    }
    KEYS.iter().copied().find(|key| *key == name)
}

/// The opposite of [`stored_form`].
pub fn shown_form(stored: &str) -> &str {
    if stored == EVERYTHING { SUPER_ADMIN } else { stored }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_and_each_is_there_once() {
        assert!(KEYS.is_sorted_by(|one, next| one < next));
        assert!(KEYS.iter().all(|key| key.len() <= 64), "the column has 64 bytes");
    }

    #[test]
    fn the_super_admin_holds_every_key_and_others_what_they_were_given() {
        let all = Permissions::new(vec![EVERYTHING.to_owned()]);
        assert_eq!((all.keys(), all.roles()), (KEYS.to_vec(), vec![SUPER_ADMIN]));
        let one = Permissions::new(vec!["im:manager:group:ban".to_owned(), "a key of old".to_owned()]);
        assert_eq!((one.keys(), one.roles()), (vec!["im:manager:group:ban"], vec![]));
        assert!(one.holds("im:manager:group:ban") && !one.holds("im:manager:group:dissolve"));
        assert_eq!(Permissions::default().keys(), Vec::<&str>::new());
    }

    #[test]
    fn a_name_leads_to_what_is_stored_and_back() {
        for name in KEYS.iter().copied().chain([SUPER_ADMIN]) {
            assert_eq!(stored_form(name).map(shown_form), Some(name));
        }
        assert_eq!(stored_form("im:manager:everything"), None);
        assert_eq!(stored_form(EVERYTHING), None, "the role has one name");
    }
}
