//! The rules of what happens inside a group.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::model::{
    ADMIN, FOR_EVER, Group, MAX_ADMINS, MAX_MEMBERS, MAX_PINS, Member, Message, Model, NORMAL, OWNER, Outcome, Request,
    TEXT, new_row,
};
use super::verbs::Verb;

impl Model {
    pub(super) fn apply_in_group(&mut self, verb: &Verb, now: i64) -> Outcome {
        match verb {
            Verb::Invite { by, group, who } => self.invite(*by, *group, who),
            Verb::Kick { by, group, who } => self.kick(*by, *group, who),
            Verb::Quit { by, group } => self.quit(*by, *group),
            Verb::ApplyGroup { by, group, text } => self.apply_group(*by, *group, text),
            Verb::HandleGroup { by, group, user, agree } => self.handle_group(*by, (*group, *user), *agree),
            Verb::Mute { by, group, who, seconds } => self.mute(*by, *group, *who, *seconds, now),
            Verb::MuteAll { by, group, on } => {
                let state = self.group(*group)?;
                state.manager(*by)?;
                state.muted = *on;
                self.event(*by, *group, if *on { 1514 } else { 1515 }, json!({}))
            }
            Verb::Admin { by, group, who, on } => self.admin(*by, *group, *who, *on),
            Verb::Transfer { by, group, to } => self.transfer(*by, *group, *to),
            Verb::Pin { by, group, id, on: true } => self.pin(*by, *group, *id),
            Verb::Pin { by, group, id, on: false } => {
                let state = self.group(*group)?;
                state.manager(*by)?;
                let place = state.pins.iter().position(|pin| pin == id).ok_or(1_040_400_008)?;
                state.pins.remove(place);
                self.event(*by, *group, 1532, json!({"messageId": id}))
            }
            Verb::Rename { by, group, name } => {
                let state = self.group(*group)?;
                state.owned_by(*by)?;
                let old = std::mem::replace(&mut state.name, name.clone());
                if old == *name {
                    return Ok(Vec::new());
                }
                self.event(*by, *group, 1520, json!({"oldName": old, "newName": name}))
            }
            Verb::Approval { by, group, on } => {
                let state = self.group(*group)?;
                state.owned_by(*by)?;
                let old = std::mem::replace(&mut state.approval, *on);
                if old == *on {
                    return Ok(Vec::new());
                }
                let content =
                    json!({"oldAvatar": null, "newAvatar": null, "oldJoinApproval": old, "newJoinApproval": on});
                self.event(*by, *group, 1502, content)
            }
            Verb::Silence { by, group, on } => {
                let state = self.groups.get_mut(group).unwrap();
                state.member(*by)?;
                state.members.get_mut(by).unwrap().silent = *on;
                Ok(Vec::new())
            }
            Verb::Dissolve { by, group } => {
                let state = self.existing(*group)?;
                state.owned_by(*by)?;
                self.end(*by, *group)
            }
            Verb::End { by, group } => {
                self.existing(*group)?;
                self.end(*by, *group)
            }
            Verb::Ban { by, group, on } => {
                let state = self.groups.get_mut(group).unwrap();
                if *on {
                    state.exists()?;
                }
                if std::mem::replace(&mut state.banned, *on) == *on {
                    return Ok(Vec::new());
                }
                self.event(*by, *group, 1533, json!({"banned": on}))
            }
            _ => unreachable!("{verb:?} is not of groups"),
        }
    }

    /// The group, past its gate.
    fn group(&mut self, id: i64) -> Result<&mut Group, i64> {
        let group = self.groups.get_mut(&id).unwrap();
        group.open()?;
        Ok(group)
    }

    /// The group, banned or not.
    fn existing(&mut self, id: i64) -> Result<&mut Group, i64> {
        let group = self.groups.get_mut(&id).unwrap();
        group.exists()?;
        Ok(group)
    }

    /// Everybody leaves with the event.
    fn end(&mut self, by: i64, id: i64) -> Outcome {
        let event = self.event(by, id, 1511, json!({}));
        let group = self.groups.get_mut(&id).unwrap();
        group.dissolved = true;
        group.active().iter().for_each(|user| group.leave(*user));
        event
    }

    /// An event for the members of this moment.
    fn event(&self, by: i64, group: i64, kind: i64, content: Value) -> Outcome {
        self.event_of(by, by, group, kind, content)
    }

    fn event_of(&self, sender: i64, operator: i64, group: i64, kind: i64, mut content: Value) -> Outcome {
        content["operatorUserId"] = json!(operator);
        let mut audience = self.groups[&group].active();
        // An operator sees what he did, though he is no member.
        if kind == 1533 || kind == 1511 {
            audience.insert(sender);
        }
        Ok(vec![Message { kind, ..new_row(true, sender, group, kind, content, audience) }])
    }

    fn invite(&mut self, by: i64, id: i64, who: &[i64]) -> Outcome {
        let group = self.group(id)?;
        let inviter = group.member(by)?.role;
        let members = group.active();
        let new: BTreeSet<i64> = who.iter().copied().filter(|user| !members.contains(user)).collect();
        if new.is_empty() {
            return Ok(Vec::new());
        }
        let needs_approval = group.approval && inviter == NORMAL;
        self.check_invited(by, &new, members.len())?;
        if needs_approval {
            for user in new {
                let text = self.join_requests.get(&(id, user)).and_then(|request| request.text.clone());
                let request = Request { text, result: 0, inviter: Some(by), handler: None, source: Some(2) };
                self.join_requests.insert((id, user), request);
            }
            return Ok(Vec::new());
        }
        let group = self.groups.get_mut(&id).unwrap();
        new.iter().for_each(|user| group.join(*user, NORMAL));
        self.event(by, id, 1509, json!({"memberUserIds": new}))
    }

    fn kick(&mut self, by: i64, id: i64, who: &[i64]) -> Outcome {
        let group = self.group(id)?;
        let actor = group.manager(by)?.role;
        if who.contains(&by) {
            return Err(1_040_500_004);
        }
        let targets: BTreeSet<i64> = who.iter().copied().filter(|user| group.member(*user).is_ok()).collect();
        let has_role = |role| targets.iter().any(|user| group.members[user].role == role);
        if has_role(OWNER) {
            return Err(1_040_500_010);
        }
        if actor == ADMIN && has_role(ADMIN) {
            return Err(1_040_500_011);
        }
        if targets.is_empty() {
            return Ok(Vec::new());
        }
        let event = self.event(by, id, 1508, json!({"memberUserIds": targets}));
        let group = self.groups.get_mut(&id).unwrap();
        targets.iter().for_each(|user| group.leave(*user));
        event
    }

    fn quit(&mut self, by: i64, id: i64) -> Outcome {
        let group = self.existing(id)?;
        if group.owner == by {
            return Err(1_040_500_003);
        }
        group.member(by)?;
        let event = self.event(by, id, 1504, json!({}));
        self.groups.get_mut(&id).unwrap().leave(by);
        event
    }

    fn apply_group(&mut self, by: i64, id: i64, text: &str) -> Outcome {
        let group = self.group(id)?;
        if group.member(by).is_ok() {
            return Err(1_040_510_004);
        }
        if group.approval {
            let text = Some(text.to_owned());
            let request = Request { text, result: 0, inviter: None, handler: None, source: Some(4) };
            self.join_requests.insert((id, by), request);
            return Ok(Vec::new());
        }
        self.enter(id, by)?;
        self.event(by, id, 1510, json!({"entrantUserId": by, "addSource": 4}))
    }

    fn enter(&mut self, id: i64, user: i64) -> Result<(), i64> {
        let group = self.groups.get_mut(&id).unwrap();
        if group.active().len() >= MAX_MEMBERS {
            return Err(1_040_500_005);
        }
        group.join(user, NORMAL);
        Ok(())
    }

    fn handle_group(&mut self, by: i64, (id, user): (i64, i64), agree: bool) -> Outcome {
        let request = self.join_requests[&(id, user)].clone();
        if request.result != 0 {
            return Err(1_040_510_002);
        }
        let group = &self.groups[&id];
        if group.member(by)?.role == NORMAL {
            return Err(1_040_510_003);
        }
        if agree {
            group.open()?;
        }
        let is_member = group.member(user).is_ok();
        if agree && !is_member {
            self.enter(id, user)?;
        }
        let row = self.join_requests.get_mut(&(id, user)).unwrap();
        (row.result, row.handler) = (if agree { 1 } else { 2 }, Some(by));
        if !agree {
            return Ok(Vec::new());
        }
        // Who came another way is no news: the request is closed all the same.
        if is_member {
            return Err(1_040_510_004);
        }
        match request.inviter {
            Some(inviter) => self.event_of(by, inviter, id, 1509, json!({"memberUserIds": [user]})),
            None => self.event_of(by, user, id, 1510, json!({"entrantUserId": user, "addSource": request.source})),
        }
    }

    fn mute(&mut self, by: i64, id: i64, who: i64, seconds: Option<i64>, now: i64) -> Outcome {
        if seconds.is_some() && who == by {
            return Err(1_040_500_014);
        }
        let group = self.group(id)?;
        let (actor, target) = (group.member(by)?.role, group.member(who)?.role);
        group.manager(by)?;
        if target == OWNER {
            return Err(1_040_500_015);
        }
        if target == ADMIN && actor != OWNER {
            return Err(1_040_500_016);
        }
        let end = seconds.map(|seconds| if seconds == 0 { FOR_EVER } else { now + seconds * 1_000 });
        group.members.get_mut(&who).unwrap().mute_end = end;
        match end {
            Some(end) => self.event(by, id, 1512, json!({"mutedUserId": who, "muteEndTime": end})),
            None => self.event(by, id, 1513, json!({"mutedUserId": who})),
        }
    }

    fn admin(&mut self, by: i64, id: i64, who: i64, on: bool) -> Outcome {
        let group = self.group(id)?;
        group.owned_by(by)?;
        let role = group.member(who).map_err(|_| 1_040_500_007)?.role;
        if role == OWNER {
            return Err(1_040_500_008);
        }
        let wanted = if on { ADMIN } else { NORMAL };
        if role == wanted {
            return Ok(Vec::new());
        }
        let is_admin = |member: &&Member| member.active && member.role == ADMIN;
        if on && group.members.values().filter(is_admin).count() >= MAX_ADMINS {
            return Err(1_040_500_009);
        }
        group.members.get_mut(&who).unwrap().role = wanted;
        self.event(by, id, if on { 1517 } else { 1518 }, json!({"memberUserIds": [who]}))
    }

    fn transfer(&mut self, by: i64, id: i64, to: i64) -> Outcome {
        let group = self.group(id)?;
        group.owned_by(by)?;
        if to == by {
            return Err(1_040_400_005);
        }
        group.member(to)?;
        group.members.get_mut(&by).unwrap().role = NORMAL;
        group.members.get_mut(&to).unwrap().role = OWNER;
        group.owner = to;
        self.event(by, id, 1507, json!({"newOwnerUserId": to}))
    }

    fn pin(&mut self, by: i64, id: i64, message: i64) -> Outcome {
        self.group(id)?.manager(by)?;
        let row = self.sees(by, id, message).filter(|row| row.kind == TEXT && !row.recalled);
        let row = row.cloned().ok_or(1_040_300_009)?;
        let group = self.group(id)?;
        if group.pins.contains(&message) {
            return Err(1_040_400_007);
        }
        if group.pins.len() >= MAX_PINS {
            return Err(1_040_400_006);
        }
        group.pins.push(message);
        let pinned = json!({
            "id": message, "senderId": row.sender, "groupId": id, "type": row.kind, "content": row.content,
            "sendTime": row.send_time, "atUserIds": null, "receiverUserIds": null,
        });
        self.event(by, id, 1531, json!({"messageId": message, "message": pinned}))
    }
}
