package connstate

import "github.com/mcp-sse/mcp-sse/metrics"

// Transport is how a client reaches the gateway.
type Transport string

// The transports between clients and the gateway.
const (
	TransportSSE        Transport = "sse"
	TransportStreamable Transport = "streamable"
	TransportStdio      Transport = "stdio"
	TransportInProcess  Transport = "in-process" // a gateway of this process, or the program itself, is the client
)

// Reason says why a connection ended; package metrics says what each means.
type Reason string

// Why a connection ended.
const (
	ClosedClient       Reason = metrics.ClosedClient
	ClosedSlow         Reason = metrics.ClosedSlow
	ClosedWriteTimeout Reason = metrics.ClosedWriteTimeout
	ClosedWriteError   Reason = metrics.ClosedWriteError
	ClosedIdle         Reason = metrics.ClosedIdle
	ClosedShutdown     Reason = metrics.ClosedShutdown
	ClosedServer       Reason = metrics.ClosedServer
	ClosedRevoked      Reason = metrics.ClosedRevoked
	ClosedExpired      Reason = metrics.ClosedExpired
	ClosedError        Reason = metrics.ClosedError
)
