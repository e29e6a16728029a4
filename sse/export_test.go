package sse

import (
	"net/http"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/eventstream"
)

// The engine's bounds, for tests that go up to them and beyond.
const (
	EngineBuffer = engineBuffer
	GatherBytes  = gatherBytes
)

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

// Line is data as the library may write it.
func Line(data []byte) []byte { return eventstream.Line(data) }
