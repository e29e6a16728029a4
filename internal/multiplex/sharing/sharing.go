// Package sharing keeps what one session with a server must know to serve several
// clients: the log level that each wants, the resources that each subscribes to,
// and which client each task belongs to.
//
// The type parameter C identifies a client; its zero value means none. The types
// have no lock: the session that owns them guards them.
package sharing
