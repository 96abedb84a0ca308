CREATE TABLE im_sequence (
    name VARBINARY(64) NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL,
    time BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
INSERT INTO im_sequence (name, value, time) VALUES ('clock', 0, 0), ('private', 0, 0), ('group', 0, 0), ('channel', 0, 0);

CREATE TABLE system_users (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    username VARBINARY(64),
    external_id VARBINARY(256),
    password VARCHAR(255),
    nickname VARCHAR(64) NOT NULL,
    avatar VARCHAR(512),
    sex INTEGER NOT NULL DEFAULT 0,
    email VARCHAR(64),
    mobile VARCHAR(32),
    status INTEGER NOT NULL DEFAULT 0,
    login_ip VARCHAR(64),
    login_date BIGINT,
    create_time BIGINT NOT NULL,
    update_time BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE UNIQUE INDEX uk_system_users_username ON system_users (username);
CREATE UNIQUE INDEX uk_system_users_external_id ON system_users (external_id);

CREATE TABLE system_oauth2_refresh_token (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    user_id BIGINT NOT NULL,
    token_hash BINARY(32) NOT NULL,
    expires_time BIGINT NOT NULL,
    create_time BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE UNIQUE INDEX uk_system_oauth2_refresh_token ON system_oauth2_refresh_token (token_hash);
CREATE INDEX idx_system_oauth2_refresh_token_user ON system_oauth2_refresh_token (user_id);
CREATE INDEX idx_system_oauth2_refresh_token_expires ON system_oauth2_refresh_token (expires_time);

CREATE TABLE system_oauth2_access_token (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    user_id BIGINT NOT NULL,
    refresh_token_id BIGINT NOT NULL,
    token_hash BINARY(32) NOT NULL,
    expires_time BIGINT NOT NULL,
    create_time BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE UNIQUE INDEX uk_system_oauth2_access_token ON system_oauth2_access_token (token_hash);
CREATE INDEX idx_system_oauth2_access_token_refresh ON system_oauth2_access_token (refresh_token_id);
CREATE INDEX idx_system_oauth2_access_token_user ON system_oauth2_access_token (user_id);
CREATE INDEX idx_system_oauth2_access_token_expires ON system_oauth2_access_token (expires_time);

CREATE TABLE im_friend (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    user_id BIGINT NOT NULL,
    friend_user_id BIGINT NOT NULL,
    silent BOOLEAN NOT NULL DEFAULT 0,
    display_name VARCHAR(64) NOT NULL DEFAULT '',
    add_source INTEGER,
    pinned BOOLEAN NOT NULL DEFAULT 0,
    blocked BOOLEAN NOT NULL DEFAULT 0,
    status INTEGER NOT NULL,
    add_time BIGINT,
    delete_time BIGINT,
    create_time BIGINT NOT NULL,
    update_time BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE UNIQUE INDEX uk_im_friend ON im_friend (user_id, friend_user_id);
CREATE INDEX idx_im_friend_sync ON im_friend (user_id, update_time, id);
CREATE INDEX idx_im_friend_clock ON im_friend (update_time);

CREATE TABLE im_friend_request (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    from_user_id BIGINT NOT NULL,
    to_user_id BIGINT NOT NULL,
    handle_result INTEGER NOT NULL DEFAULT 0,
    apply_content VARCHAR(255),
    handle_content VARCHAR(255),
    display_name VARCHAR(64),
    add_source INTEGER,
    handle_time BIGINT,
    create_time BIGINT NOT NULL,
    update_time BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE UNIQUE INDEX uk_im_friend_request ON im_friend_request (from_user_id, to_user_id);
CREATE INDEX idx_im_friend_request_sync_from ON im_friend_request (from_user_id, update_time, id);
CREATE INDEX idx_im_friend_request_sync_to ON im_friend_request (to_user_id, update_time, id);
CREATE INDEX idx_im_friend_request_clock ON im_friend_request (update_time);

CREATE TABLE im_private_message (
    id BIGINT NOT NULL PRIMARY KEY,
    client_message_id VARBINARY(64) NOT NULL,
    sender_id BIGINT NOT NULL,
    receiver_id BIGINT NOT NULL,
    `type` INTEGER NOT NULL,
    content MEDIUMTEXT NOT NULL,
    content_hash BINARY(16) NOT NULL,
    status INTEGER NOT NULL,
    receipt_status INTEGER NOT NULL,
    send_time BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE UNIQUE INDEX uk_im_private_message_client ON im_private_message (sender_id, client_message_id);
CREATE INDEX idx_im_private_message_sender ON im_private_message (sender_id, id);
CREATE INDEX idx_im_private_message_receiver ON im_private_message (receiver_id, id);
CREATE INDEX idx_im_private_message_pair ON im_private_message (sender_id, receiver_id, id);

CREATE TABLE im_conversation_read (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    user_id BIGINT NOT NULL,
    conversation_type INTEGER NOT NULL,
    target_id BIGINT NOT NULL,
    message_id BIGINT NOT NULL,
    read_time BIGINT NOT NULL,
    update_time BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE UNIQUE INDEX uk_im_conversation_read ON im_conversation_read (user_id, conversation_type, target_id);
CREATE INDEX idx_im_conversation_read_sync ON im_conversation_read (user_id, update_time, id);
CREATE INDEX idx_im_conversation_read_clock ON im_conversation_read (update_time);
