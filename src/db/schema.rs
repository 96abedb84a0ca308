//! The tables as diesel sees them: one description for the three databases. `migrations/` makes them; a test compares.

diesel::table! {
    /// Counter rows: `clock`, `private`, `group`, `channel`, and one `writer:<node>` a writer (`design.md` section 4).
    im_sequence (name) {
        name -> Text,
        value -> BigInt,
        time -> BigInt,
    }
}

diesel::table! {
    system_users (id) {
        id -> BigInt,
        username -> Nullable<Text>,
        external_id -> Nullable<Text>,
        password -> Nullable<Text>,
        nickname -> Text,
        avatar -> Nullable<Text>,
        sex -> Integer,
        email -> Nullable<Text>,
        mobile -> Nullable<Text>,
        status -> Integer,
        login_ip -> Nullable<Text>,
        login_date -> Nullable<BigInt>,
        create_time -> BigInt,
        update_time -> BigInt,
    }
}

diesel::table! {
    infra_file (id) {
        id -> BigInt,
        config_id -> BigInt,
        path -> Text,
        name -> Text,
        url -> Text,
        #[sql_name = "type"]
        content_type -> Nullable<Text>,
        size -> BigInt,
        creator -> BigInt,
        create_time -> BigInt,
    }
}

diesel::table! {
    system_oauth2_refresh_token (id) {
        id -> BigInt,
        user_id -> BigInt,
        token_hash -> Binary,
        expires_time -> BigInt,
        create_time -> BigInt,
    }
}

diesel::table! {
    system_oauth2_access_token (id) {
        id -> BigInt,
        user_id -> BigInt,
        refresh_token_id -> BigInt,
        token_hash -> Binary,
        expires_time -> BigInt,
        create_time -> BigInt,
    }
}

diesel::table! {
    /// What operators may do: a permission key, or `*:*:*` for all of them.
    system_user_permission (user_id, permission) {
        user_id -> BigInt,
        permission -> Text,
        create_time -> BigInt,
    }
}

diesel::table! {
    im_friend (id) {
        id -> BigInt,
        user_id -> BigInt,
        friend_user_id -> BigInt,
        silent -> Bool,
        display_name -> Text,
        add_source -> Nullable<Integer>,
        pinned -> Bool,
        blocked -> Bool,
        status -> Integer,
        add_time -> Nullable<BigInt>,
        delete_time -> Nullable<BigInt>,
        create_time -> BigInt,
        update_time -> BigInt,
    }
}

diesel::table! {
    im_friend_request (id) {
        id -> BigInt,
        from_user_id -> BigInt,
        to_user_id -> BigInt,
        handle_result -> Integer,
        apply_content -> Nullable<Text>,
        handle_content -> Nullable<Text>,
        display_name -> Nullable<Text>,
        add_source -> Nullable<Integer>,
        handle_time -> Nullable<BigInt>,
        create_time -> BigInt,
        update_time -> BigInt,
    }
}

diesel::table! {
    im_private_message (id) {
        id -> BigInt,
        client_message_id -> Text,
        sender_id -> BigInt,
        receiver_id -> BigInt,
        #[sql_name = "type"]
        type_ -> Integer,
        content -> Text,
        content_hash -> Binary,
        status -> Integer,
        receipt_status -> Integer,
        send_time -> BigInt,
    }
}

diesel::table! {
    im_conversation_read (id) {
        id -> BigInt,
        user_id -> BigInt,
        conversation_type -> Integer,
        target_id -> BigInt,
        message_id -> BigInt,
        read_time -> BigInt,
        update_time -> BigInt,
    }
}

diesel::table! {
    im_group (id) {
        id -> BigInt,
        name -> Text,
        owner_user_id -> BigInt,
        avatar -> Nullable<Text>,
        notice -> Nullable<Text>,
        banned -> Bool,
        banned_reason -> Nullable<Text>,
        banned_time -> Nullable<BigInt>,
        status -> Integer,
        dissolved_time -> Nullable<BigInt>,
        muted_all -> Bool,
        join_approval -> Bool,
        pinned_message_ids -> Text,
        member_version -> BigInt,
        create_time -> BigInt,
        update_time -> BigInt,
    }
}

diesel::table! {
    im_group_member (id) {
        id -> BigInt,
        group_id -> BigInt,
        user_id -> BigInt,
        display_user_name -> Nullable<Text>,
        group_remark -> Nullable<Text>,
        silent -> Bool,
        status -> Integer,
        role -> Integer,
        join_time -> Nullable<BigInt>,
        add_source -> Nullable<Integer>,
        inviter_user_id -> Nullable<BigInt>,
        quit_time -> Nullable<BigInt>,
        mute_end_time -> Nullable<BigInt>,
        create_time -> BigInt,
        update_time -> BigInt,
    }
}

diesel::table! {
    im_group_member_span (id) {
        id -> BigInt,
        user_id -> BigInt,
        group_id -> BigInt,
        from_id -> BigInt,
        to_id -> BigInt,
    }
}

diesel::table! {
    im_group_request (id) {
        id -> BigInt,
        group_id -> BigInt,
        user_id -> BigInt,
        inviter_user_id -> Nullable<BigInt>,
        apply_content -> Nullable<Text>,
        add_source -> Nullable<Integer>,
        handle_result -> Integer,
        handle_user_id -> Nullable<BigInt>,
        handle_content -> Nullable<Text>,
        handle_time -> Nullable<BigInt>,
        create_time -> BigInt,
        update_time -> BigInt,
    }
}

diesel::table! {
    im_group_message (id) {
        id -> BigInt,
        client_message_id -> Text,
        sender_id -> BigInt,
        group_id -> BigInt,
        #[sql_name = "type"]
        type_ -> Integer,
        content -> Text,
        content_hash -> Binary,
        status -> Integer,
        receipt_status -> Integer,
        send_time -> BigInt,
        at_user_ids -> Nullable<Text>,
        receiver_user_ids -> Nullable<Text>,
    }
}

diesel::table! {
    im_device_position (id) {
        id -> BigInt,
        token_id -> BigInt,
        device -> Text,
        private_id -> BigInt,
        group_id -> BigInt,
        channel_id -> BigInt,
    }
}

diesel::table! {
    im_sensitive_word (id) {
        id -> BigInt,
        word -> Text,
        status -> Integer,
        creator -> BigInt,
        create_time -> BigInt,
        update_time -> BigInt,
    }
}

diesel::allow_tables_to_appear_in_same_query!(system_users, system_oauth2_refresh_token, system_oauth2_access_token,);
diesel::allow_tables_to_appear_in_same_query!(system_users, im_friend,);
diesel::allow_tables_to_appear_in_same_query!(system_users, system_user_permission,);
