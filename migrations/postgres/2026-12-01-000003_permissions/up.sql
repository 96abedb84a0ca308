CREATE TABLE system_user_permission (
    user_id BIGINT NOT NULL,
    permission TEXT COLLATE "C" NOT NULL,
    create_time BIGINT NOT NULL,
    PRIMARY KEY (user_id, permission)
);
