CREATE TABLE infra_file (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    config_id BIGINT NOT NULL,
    path VARBINARY(1024) NOT NULL,
    name VARCHAR(255) NOT NULL,
    url TEXT NOT NULL,
    type VARCHAR(128),
    size BIGINT NOT NULL,
    creator BIGINT NOT NULL,
    create_time BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE UNIQUE INDEX uk_infra_file_path ON infra_file (path);
CREATE INDEX idx_infra_file_creator ON infra_file (creator, id);
