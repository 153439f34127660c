// Package round is the game of Punto Banco at one table, as values.
//
// State.Step takes one fact that was observed (an Input) and returns the next
// State and the facts that follow (Events). It has no clock and does no input
// or output, so the same inputs always give the same events: the journal
// proves a day's play by running it again.
//
// What the reader knows and what the table has shown are kept apart. A face
// that the table has not shown changes no public event: see State.public.
//
// The rules, with the seeds they come from, are written where they are applied:
// hand.go the draw table, deal.go the dealing order, shoe.go the shoe and its
// cut card, alert.go every error rule in one table.
package round
