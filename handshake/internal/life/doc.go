// Package life is the life of a session as a table: a connection has no session, gets one, loses it
// and gets the next, and its client is told meanwhile what the server has. What follows from an event
// is [Next], which has no effects of its own.
//
//	table.go  phases, events, actions, and what follows from what
//	told.go   what the client was told, and what becomes of its messages
//
// Package handshake does not use it yet: there the loop, with the flags of a Bridge, still decides all
// this. docs/design/life.md has the rows as lists and as a diagram, which the tests of this package
// compare with the code, and the plan of the driver. docs/reference/states.md says what is so today.
package life
