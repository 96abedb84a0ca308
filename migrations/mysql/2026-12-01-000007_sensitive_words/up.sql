CREATE TABLE im_sensitive_word (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    word VARCHAR(64) NOT NULL,
    status INTEGER NOT NULL,
    creator BIGINT NOT NULL,
    create_time BIGINT NOT NULL,
    update_time BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE UNIQUE INDEX uk_im_sensitive_word ON im_sensitive_word (word);
CREATE INDEX idx_im_sensitive_word_clock ON im_sensitive_word (update_time);
