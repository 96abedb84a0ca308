CREATE TABLE im_group (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    owner_user_id BIGINT NOT NULL,
    avatar TEXT,
    notice TEXT,
    banned BOOLEAN NOT NULL DEFAULT 0,
    banned_reason TEXT,
    banned_time BIGINT,
    status INTEGER NOT NULL,
    dissolved_time BIGINT,
    muted_all BOOLEAN NOT NULL DEFAULT 0,
    join_approval BOOLEAN NOT NULL DEFAULT 0,
    pinned_message_ids TEXT NOT NULL DEFAULT '',
    member_version BIGINT NOT NULL DEFAULT 0,
    create_time BIGINT NOT NULL,
    update_time BIGINT NOT NULL
);
CREATE INDEX idx_im_group_clock ON im_group (update_time);

CREATE TABLE im_group_member (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    group_id BIGINT NOT NULL,
    user_id BIGINT NOT NULL,
    display_user_name TEXT,
    group_remark TEXT,
    silent BOOLEAN NOT NULL DEFAULT 0,
    status INTEGER NOT NULL,
    role INTEGER NOT NULL,
    join_time BIGINT,
    add_source INTEGER,
    inviter_user_id BIGINT,
    quit_time BIGINT,
    mute_end_time BIGINT,
    create_time BIGINT NOT NULL,
    update_time BIGINT NOT NULL
);
CREATE UNIQUE INDEX uk_im_group_member ON im_group_member (group_id, user_id);
CREATE INDEX idx_im_group_member_sync ON im_group_member (user_id, update_time, id);
CREATE INDEX idx_im_group_member_active ON im_group_member (group_id, status, user_id);
CREATE INDEX idx_im_group_member_clock ON im_group_member (update_time);

CREATE TABLE im_group_member_span (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    user_id BIGINT NOT NULL,
    group_id BIGINT NOT NULL,
    from_id BIGINT NOT NULL,
    to_id BIGINT NOT NULL
);
CREATE UNIQUE INDEX uk_im_group_member_span ON im_group_member_span (user_id, group_id, from_id);
CREATE INDEX idx_im_group_member_span_open ON im_group_member_span (user_id, to_id);
CREATE INDEX idx_im_group_member_span_group ON im_group_member_span (group_id, user_id, from_id, to_id);

CREATE TABLE im_group_request (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    group_id BIGINT NOT NULL,
    user_id BIGINT NOT NULL,
    inviter_user_id BIGINT,
    apply_content TEXT,
    add_source INTEGER,
    handle_result INTEGER NOT NULL DEFAULT 0,
    handle_user_id BIGINT,
    handle_content TEXT,
    handle_time BIGINT,
    create_time BIGINT NOT NULL,
    update_time BIGINT NOT NULL
);
CREATE UNIQUE INDEX uk_im_group_request ON im_group_request (group_id, user_id);
CREATE INDEX idx_im_group_request_sync ON im_group_request (group_id, update_time, id);
CREATE INDEX idx_im_group_request_clock ON im_group_request (update_time);

CREATE TABLE im_group_message (
    id INTEGER NOT NULL PRIMARY KEY,
    client_message_id TEXT NOT NULL,
    sender_id BIGINT NOT NULL,
    group_id BIGINT NOT NULL,
    type INTEGER NOT NULL,
    content TEXT NOT NULL,
    content_hash BLOB NOT NULL,
    status INTEGER NOT NULL,
    receipt_status INTEGER NOT NULL,
    send_time BIGINT NOT NULL,
    at_user_ids TEXT,
    receiver_user_ids TEXT
);
CREATE UNIQUE INDEX uk_im_group_message_client ON im_group_message (sender_id, client_message_id);
CREATE INDEX idx_im_group_message_group ON im_group_message (group_id, id);
CREATE INDEX idx_im_group_message_receipt ON im_group_message (group_id, receipt_status, id);
CREATE INDEX idx_im_conversation_read_target ON im_conversation_read (conversation_type, target_id, user_id, message_id);
