CREATE TABLE system_user_permission (
    user_id BIGINT NOT NULL,
    permission VARBINARY(64) NOT NULL,
    create_time BIGINT NOT NULL,
    PRIMARY KEY (user_id, permission)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
