package connstate

// Transport is how a client reaches the gateway.
type Transport string

// The transports between clients and the gateway.
const (
	TransportSSE        Transport = "sse"
	TransportStreamable Transport = "streamable"
	TransportStdio      Transport = "stdio"
)

// Reason says why a connection ended.
type Reason string

// Why a connection ended.
const (
	ClosedClient       Reason = "client"        // the client went away
	ClosedSlow         Reason = "slow"          // it did not read what waited for it
	ClosedWriteTimeout Reason = "write_timeout" // one write took longer than the write timeout
	ClosedWriteError   Reason = "write_error"   // a write failed
	ClosedIdle         Reason = "idle"          // no POST and nothing in flight for the idle timeout
	ClosedShutdown     Reason = "shutdown"      // the gateway shut down
	ClosedServer       Reason = "server"        // the server refused this client a session, or ended it
	ClosedError        Reason = "error"         // something inside the gateway failed
)
