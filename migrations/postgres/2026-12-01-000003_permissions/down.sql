DROP TABLE system_user_permission;
