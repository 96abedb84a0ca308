CREATE TABLE im_device_position (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    token_id BIGINT NOT NULL,
    device TEXT NOT NULL,
    private_id BIGINT NOT NULL,
    group_id BIGINT NOT NULL,
    channel_id BIGINT NOT NULL
);
CREATE UNIQUE INDEX uk_im_device_position ON im_device_position (token_id, device);
