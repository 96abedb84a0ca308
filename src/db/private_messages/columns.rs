//! Inserting messages into PostgreSQL: an array for each column, not a parameter for each value. So the text is the same
//! for any number of rows and stays prepared, and the server does not parse thousands of parameters for every batch.

use diesel::QueryResult;
use diesel::pg::Pg;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::sql_types::{Array, BigInt, Binary, Integer, Text};

use super::PrivateMessageRow;

/// `INSERT … ON CONFLICT DO NOTHING` of these rows, in their order.
pub(super) struct InsertColumns<'a> {
    ids: Vec<i64>,
    client_message_ids: Vec<&'a str>,
    senders: Vec<i64>,
    receivers: Vec<i64>,
    types: Vec<i32>,
    contents: Vec<&'a str>,
    content_hashes: Vec<&'a [u8]>,
    statuses: Vec<i32>,
    receipt_statuses: Vec<i32>,
    send_times: Vec<i64>,
}

impl<'a> InsertColumns<'a> {
    pub fn of(rows: &'a [PrivateMessageRow]) -> InsertColumns<'a> {
        InsertColumns {
            ids: rows.iter().map(|row| row.id.0).collect(),
            client_message_ids: rows.iter().map(|row| row.client_message_id.as_str()).collect(),
            senders: rows.iter().map(|row| row.sender_id.0).collect(),
            receivers: rows.iter().map(|row| row.receiver_id.0).collect(),
            types: rows.iter().map(|row| row.type_).collect(),
            contents: rows.iter().map(|row| row.content.as_str()).collect(),
            content_hashes: rows.iter().map(|row| row.content_hash.as_slice()).collect(),
            statuses: rows.iter().map(|row| row.status).collect(),
            receipt_statuses: rows.iter().map(|row| row.receipt_status).collect(),
            send_times: rows.iter().map(|row| row.send_time).collect(),
        }
    }
}

impl QueryId for InsertColumns<'_> {
    type QueryId = InsertColumns<'static>;
}

impl QueryFragment<Pg> for InsertColumns<'_> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            "INSERT INTO im_private_message (id, client_message_id, sender_id, receiver_id, type, content, \
             content_hash, status, receipt_status, send_time) SELECT * FROM unnest(",
        );
        out.push_bind_param::<Array<BigInt>, _>(&self.ids)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Text>, _>(&self.client_message_ids)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<BigInt>, _>(&self.senders)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<BigInt>, _>(&self.receivers)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Integer>, _>(&self.types)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Text>, _>(&self.contents)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Binary>, _>(&self.content_hashes)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Integer>, _>(&self.statuses)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Integer>, _>(&self.receipt_statuses)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<BigInt>, _>(&self.send_times)?;
        out.push_sql(") ON CONFLICT DO NOTHING");
        Ok(())
    }
}
