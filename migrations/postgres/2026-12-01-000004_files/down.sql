DROP TABLE infra_file;
