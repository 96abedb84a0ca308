DROP TABLE im_conversation_read;
DROP TABLE im_private_message;
DROP TABLE im_friend_request;
DROP TABLE im_friend;
DROP TABLE system_oauth2_access_token;
DROP TABLE system_oauth2_refresh_token;
DROP TABLE system_users;
DROP TABLE im_sequence;
