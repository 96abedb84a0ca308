DROP TABLE im_device_position;
