DROP TABLE im_sensitive_word;
