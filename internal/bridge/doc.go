// Package bridge passes messages between a connection and its session, and gets the connection its sessions, one after
// the other: the next when one is lost, none while what is remembered is enough. Package handshake supplies them.
//
//	Bridge ── bridge.go      the client's messages: answered here, or sent to the session
//	       ├─ life.go        its sessions, one after the other: events in, moves out
//	       │    ├─ internal/life   the table: what follows from each event
//	       │    ├─ actions.go      what a move does
//	       │    ├─ recall.go       what memory has for this client
//	       │    ├─ told.go         what the client is told without a session, and when that was otherwise
//	       │    ├─ initializes.go  the client's own initialize
//	       │    ├─ prepare.go      brings a session into use
//	       │    └─ idle.go         a session that its client does not use ends
//	       ├─ start.go       one start: events in, actions out
//	       │    └─ state.go  the table of a start: what follows from each event
//	       ├─ attachment.go  the connection as its session sees it
//	       ├─ early.go       what a server sends before its session is in use
//	       ├─ restore.go     what a new session must get again
//	       └─ report.go      log lines and errors
package bridge
