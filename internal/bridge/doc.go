// Package bridge passes messages between a connection and its session, and gets the connection its sessions, one after
// the other: the next when one is lost, none while what is remembered is enough. Package handshake supplies them.
//
// In reading order, which docs/design/life.md has without branches:
//
//	bridge.go        the client's messages: answered here, or given to the life
//	events.go        what happens to the sessions, and which event it is
//	messages.go      what becomes of a message
//	life.go          the moves: what follows from an event is the table in internal/bridge/internal/life; when a
//	                 session is idle
//	 ├─ actions.go      what a move does with the server, its sessions and failures
//	 ├─ told.go         what the client is told without a session, and the correction when a session says otherwise
//	 ├─ recall.go       which event the answer of memory is
//	 ├─ initializes.go  the client's own initialize
//	 └─ refusal.go      why a message is refused
//	sessions.go      what there is now, under one lock, with the question to memory
//	 ├─ start.go        one start: events in, actions out, by the table in state.go
//	 ├─ prepare.go      brings a session into use
//	 └─ attachment.go   the connection as its session sees it; early.go keeps what comes before it is in use
//	client.go        the client, as all of these see it, and the options
//	 ├─ select.go       what a selection leaves out of lists, and refuses
//	 ├─ report.go       what it may see of failures; log lines and metrics
//	 └─ restore.go      what a new session must get again
//
// Files below tell the files above about events through the interfaces holder, starter and gatekeeper.
package bridge
