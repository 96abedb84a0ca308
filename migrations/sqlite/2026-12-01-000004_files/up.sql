CREATE TABLE infra_file (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    config_id BIGINT NOT NULL,
    path TEXT NOT NULL,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    type TEXT,
    size BIGINT NOT NULL,
    creator BIGINT NOT NULL,
    create_time BIGINT NOT NULL
);
CREATE UNIQUE INDEX uk_infra_file_path ON infra_file (path);
CREATE INDEX idx_infra_file_creator ON infra_file (creator, id);
