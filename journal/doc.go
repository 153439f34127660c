// Package journal is the durable, tamper-evident log of a table, and the outbox of its publisher.
//
// # Use
//
// One goroutine, the core, appends: a raw chunk, the inputs it held and the events they caused go into one Append,
// which returns when they are on the disk. Only then is anything shown or published. The publisher, another
// goroutine, reads the public events with Events and reports acknowledgements with Deliver; the core's next Append,
// or Flush about once a second, stores that cursor. A crash may lose the last second of it: some events are then
// published again, with the same epoch and seq. Prune, between shoes, keeps the journal within its bounds.
//
// At start the core takes LastSnapshot and replays Read from there.
//
// # Files
//
//	journal.db        the SQLite database, mode 0640, in WAL mode, auto_vacuum incremental
//	journal.db-wal    SQLite's write-ahead log; Close removes it
//	journal.db-shm    SQLite's index of that log, rebuilt at will
//	journal.db.lock   held with flock by the one writer; empty, never removed
//	journal.db.new    a journal being created; renamed when complete
//
// Any number of readers (OpenRead, Verify, the sqlite3 shell) may look on. The database says what it is by
// application_id 0x73686f65 ("shoe") and user_version 2.
//
//	record  no      INTEGER PRIMARY KEY   Record.No, contiguous from 1
//	        at      INTEGER               Record.At, nanoseconds since 1970 UTC
//	        kind    INTEGER               1 chunk, 2 input, 3 event, 4 snapshot, 5 note, 6 command
//	        source  TEXT                  Record.Source
//	        seq     INTEGER               Record.Seq, contiguous from 1 over the public events; 0 on other records
//	        body    BLOB                  Record.Body
//	        hash    BLOB                  32 bytes, below
//	event   unique index on seq where seq > 0
//	command index on source and no where kind is 6
//	meta    name    TEXT PRIMARY KEY      epoch, blind, anchor, delivered, clean, count:NAME
//	        value   BLOB
//	        sum     BLOB                  first 8 bytes of SHA-256 of name, newline, value
//
// Nothing but Prune ever deletes or changes a record. A note is a JSON object: {"note":"repaired","torn_bytes":N} when
// Open cut a half-written transaction, {"note":"pruned","reason":"age"|"size","from":N,"to":N,"seq":N,"hash":HEX}
// for each run of records dropped.
//
// # Chain
//
// The hash of a record is SHA-256 over, without gaps, integers big-endian:
//
//	previous hash   32 bytes
//	no               8
//	at               8   two's complement
//	kind             1
//	length           4   of source
//	source
//	seq              8
//	length           4   of body
//	body
//
// Every length stands before what it measures, so no two records give the same bytes. The hash before record 1 is
// SHA-256 of "shoed journal 1", newline and the epoch. After a Prune the variable "anchor" holds number, last seq and hash
// of the last record dropped, the chain goes on from there, and a note in the chain says the same.
//
// So a change, a loss or an exchange of records is found, unless all that follows is computed anew; that, and a cut
// end, are found with a Head kept elsewhere: those that the table signs and publishes. An end cut before the
// delivered cursor is found without. Open checks from the last snapshot on, Verify everything, and each record that is
// read is checked against its hash.
//
// # Published heads
//
// The hash at a record cannot be published as it is. It covers faces that the table has not shown, in raw bytes and
// inputs; who knows the hash before it and can guess the times could try out all 52 cards. So a Head is
//
//	HMAC-SHA-256(blind, hash)
//
// where the variable "blind" is 32 random bytes made with the journal and never published. Without them a head cannot
// be told from chance. It binds all the same: to have another journal, with a blind of its own, give the same head, one
// must find a collision of SHA-256; so the secret may lie in the file, and the file and the heads are all that Verify
// needs. Who has the file has the faces anyway.
//
// A Head names the event by its seq, never the record by its no: alerts for surveillance alone are records too, raised
// by faces that may be unseen, and a public count of records would show them.
//
// # What a sync promises
//
// Append, Count, and Flush with a cursor to store, are one transaction each, and one fdatasync of the write-ahead log
// (synchronous=FULL). When they return nil the records survive the death of the process and the loss of power, as far
// as the disk keeps what it says it has written. A transaction is there whole or not at all.
//
// SQLite reads a log without syncing it, so what a dead process had written but not synced would be believed and
// might still be lost. Open therefore writes the log's whole transactions again in place and syncs before it lets
// SQLite read them: what Open finds is durable, acknowledged or not. For the same reason a failed write that was not
// for lack of room ends the use of the handle: the files are opened again in this way and compared with memory.
//
// A crash can leave only the last transaction of the log incomplete. Open cuts that and says how many bytes it was. If
// a bad frame comes before a transaction that must have been acknowledged, it is no crash but damage, and Open
// refuses. In the very last transactions the two cannot be told apart.
package journal
