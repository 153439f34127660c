// Package mqtt is the table's outside contract: what a table tells, on which
// topic, in which order, and the broker that a table without one brings along.
//
// Everything is JSON over MQTT 3.1.1 under shoed/v1/{site}/{table}/:
//
//	status     retained, QoS 1   online, stopped, or offline as the will
//	info       retained, QoS 1   what this table is; changes only with its configuration
//	roads      retained, QoS 1   the shoe's decided rounds, drawn; changes when one is over or corrected
//	insurance  retained, QoS 1   the round's insurance window and its offers
//	alerts     retained, QoS 1   what stands, and how it can be answered
//	state      retained, QoS 1   the table as it has shown itself; after the events it reflects
//	event      QoS 1             every public event, in order
//	audit      QoS 1             the full view, for surveillance; off by default
//	health     QoS 0             every 20 s ± 2 s
//	rsp        QoS 1             to rsp/{user}/{command}: what has become of a command
//	replay     QoS 1             to replay/{user}: events again
//
// It listens to cmd/{user}/{command}. A command passes a Gate, which says who may
// give which, and is given its effect by the goroutine that owns the table.
//
// The journal is the outbox. A Publisher reads it from the last acknowledged
// event on and moves that cursor on proven acknowledgements only, so whatever
// was not certainly received is sent again, marked delayed. Consumers tell
// repeats by epoch and seq.
//
// Health, and each event that says what a round came to, carries a chain: the
// head of the journal at an event, signed by the table's key, whose public half
// is in info. Kept elsewhere it shows later a journal that was rebuilt.
//
//	channels.go    which messages there are, and their schemas (schema/)
//	payload.go     what the messages are
//	chain.go       of those, the signed heads
//	boards.go      of those, roads and insurance
//	alerts.go      of those, the alerts
//	audit.go       of those, the full view
//	command.go     what commands there are, and what is told of them
//	gate.go        Gate: which of them pass
//	replay.go      events again, for who asks
//	publisher.go   Publisher: which broker, when to try again, what is logged
//	session.go     one connection of it, from CONNECT to its end
//	hear.go        what it hears: its own status, commands, its loopback
//	health.go      what it says of itself every so often
//	dial.go        the network connection and its time limits
//	clip.go        how much of a packet is read
//	tls.go         whom it trusts, what it shows, and when that ends
//	access.go      Role and User: who may read and write what at a broker
//	password.go    users' passwords, as mosquitto_passwd keeps them
//	broker.go      Broker: the embedded broker
//	admission.go   whom it lets in, and what they may do there
//	listen.go      its listeners, TCP and WebSocket, and how long they wait
//	account.go     Account: who our programs that are no table are at a broker
//	subscribe.go   Subscribe: a consumer within them
//	ask.go         Ask: a command by one of them
//	prove.go       Prove: whether the table has its rights at a broker
//
// Faces that the table has not shown are in no message: events come from
// round masked, and the documents use only what round says has been shown. Of
// two runs that differ in unseen faces only, all messages are equal but for a
// chain's head and signature: these come of every record, and of a secret of the
// journal without which they are as good as chance. A chain's seq is the
// event's; the record's own number would count the alerts that are not public.
package mqtt
