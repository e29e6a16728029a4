package sse

import (
	"net/http"
	"net/netip"
	"time"
)

// The engine's bounds, for tests that go up to them and beyond.
const (
	EngineBuffer = engineBuffer
	GatherBytes  = gatherBytes
)

// ClientAddr is what the limits and logs take for the client's address.
func (h *Handler) ClientAddr(r *http.Request) netip.Addr { return h.clientAddr(r) }

// IsLocal reports whether a request counts as one from this machine.
func (h *Handler) IsLocal(r *http.Request) bool { return h.isLocal(r) }

// Endpoint is the path that the endpoint event would carry.
func (h *Handler) Endpoint(r *http.Request, id string) string { return h.endpoint(r, id) }

// StreamExists reports whether the library still knows the stream.
func (h *Handler) StreamExists(id string) bool { return h.engine.server.StreamExists(id) }

// BufferSize is how many places the library makes for the events of a stream.
func (h *Handler) BufferSize() int { return h.engine.server.BufferSize }

// Replays reports whether the library would keep events or make streams by itself.
func (h *Handler) Replays() bool { return h.engine.server.AutoReplay || h.engine.server.AutoStream }

// Jittered is the time until the next heartbeat.
func Jittered(d time.Duration) time.Duration { return jittered(d) }

// SafePath reports whether a path may stand in an endpoint event.
func SafePath(p string) bool { return safePath(p) }

// Line is data as the library may write it.
func Line(data []byte) []byte { return line(data) }
