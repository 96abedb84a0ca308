CREATE TABLE im_sensitive_word (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    word TEXT NOT NULL,
    status INTEGER NOT NULL,
    creator BIGINT NOT NULL,
    create_time BIGINT NOT NULL,
    update_time BIGINT NOT NULL
);
CREATE UNIQUE INDEX uk_im_sensitive_word ON im_sensitive_word (word);
CREATE INDEX idx_im_sensitive_word_clock ON im_sensitive_word (update_time);
