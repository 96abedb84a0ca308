CREATE TABLE im_device_position (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    token_id BIGINT NOT NULL,
    device VARBINARY(256) NOT NULL,
    private_id BIGINT NOT NULL,
    group_id BIGINT NOT NULL,
    channel_id BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
CREATE UNIQUE INDEX uk_im_device_position ON im_device_position (token_id, device);
