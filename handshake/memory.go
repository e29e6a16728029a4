package handshake

import (
	"encoding/json"

	"github.com/mcp-sse/mcp-sse/internal/remember"
)

// IsKnown reports whether anything is remembered of the server.
func (s *source) IsKnown() bool {
	memory := s.Options().Memory
	return memory != nil && memory.HasAny()
}

// LearnsAlone reports whether a session without a client can show what the server says to each.
func (s *source) LearnsAlone() bool {
	opts := s.Options()
	return opts.Memory != nil && !opts.Forwards && !s.Shares()
}

// clientOf returns the client, as memory tells clients apart, that initializes with params. who is its
// [remember.Principal]. plain is that of [remember.ClientOf].
func (s *source) clientOf(params json.RawMessage, who string) (client remember.Client, plain bool) {
	client, plain = remember.ClientOf(params, who)
	if s.Options().Forwards {
		client = client.Alone()
	}
	return client, plain
}

// Recalled is what memory has for a client.
type Recalled struct {
	Exact *remember.Answers // for a client that declares the same; nil: there are none
	// The rest is for a client without Exact.
	Earlier *remember.Answers // for one that goes on with a session of before, by its protocol version
	Nearest *remember.Answers // what the server said to another kind of client, or in another place
	HasAny  bool              // memory has something, perhaps for others
}

// Recall asks memory, which is Options().Memory of some time, for a client that initializes with params; who it is,
// [remember.Principal] says. version is the protocol version that the client has negotiated before, or empty. Recall
// may read a file.
func (s *source) Recall(memory *remember.Server, params json.RawMessage, who, version string) (r Recalled) {
	client, plain := s.clientOf(params, who)
	if !plain { // it has something that others have not sent: it is told of nothing
		r.HasAny = memory.HasAny()
		return r
	}
	if r.Exact = memory.Answers(client); r.Exact != nil {
		return r
	}
	r.HasAny = memory.HasAny()
	if version != "" {
		earlier, _ := s.clientOf(nil, who)
		r.Earlier = memory.AnswersAt(version, earlier)
	}
	if !s.Shares() {
		r.Nearest = memory.Nearest(client)
	}
	return r
}
