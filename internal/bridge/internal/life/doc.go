// Package life is the life of a session as a table: a connection has no session, gets one, loses it
// and gets the next, and its client is told meanwhile what the server has. [Next] says what follows from
// an event, and has no effects of its own.
//
//	table.go  phases, events, actions, and what follows from what
//	told.go   what the client was told, and what becomes of its messages
//
// The driver is internal/bridge/life.go. docs/design/life.md has the rows as lists, and the moves as a diagram;
// the tests of this package compare both with the code.
package life
