DROP INDEX idx_im_conversation_read_target;
DROP TABLE im_group_message;
DROP TABLE im_group_request;
DROP TABLE im_group_member_span;
DROP TABLE im_group_member;
DROP TABLE im_group;
