package background

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"

	"github.com/mcp-sse/mcp-sse/internal/closed"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// maxIntroduction bounds what is read of a client to find its initialize, in bytes. It fits into a pipe
// that nobody reads yet, on every system.
const maxIntroduction = 15 << 10

// Introduction watches a client of stdio until it is initialized: it is the reader and the writer of both
// streams. Make it with NewIntroduction. It is safe for concurrent use.
type Introduction struct {
	in       io.Reader
	out      io.Writer
	asked    chan json.RawMessage // gets the params of the client's initialize
	answered chan struct{}        // closed when the client has the result, before it leaves

	mu   sync.Mutex // guards what follows
	line []byte     // the beginning of the client's next line
	read int        // bytes of the client so far
	// waits says that the client has asked, and over that it has its result, or will not ask.
	waits, over bool
	left        bool            // it has ended its input: an answer that comes later may find nobody
	params      json.RawMessage // of its initialize
}

// NewIntroduction returns one that has read nothing.
func NewIntroduction(in io.Reader, out io.Writer) *Introduction {
	return &Introduction{in: in, out: out, asked: make(chan json.RawMessage, 1), answered: make(chan struct{})}
}

// Read reads from the client.
func (i *Introduction) Read(p []byte) (int, error) {
	n, err := i.in.Read(p)
	i.mu.Lock()
	defer i.mu.Unlock()
	if err != nil {
		i.left = true
	}
	if !i.waits && !i.over {
		i.read += n
		i.line = append(i.line, p[:n]...)
		i.findInitialize()
	}
	return n, err
}

func (i *Introduction) findInitialize() {
	for !i.waits {
		line, rest, whole := bytes.Cut(i.line, []byte("\n"))
		if !whole {
			break
		}
		if m, err := jsonrpc.Parse(line); err == nil && m.Method == mcp.MethodInitialize &&
			len(m.Params()) <= maxIntroduction {
			i.waits, rest = true, nil
			i.params = bytes.Clone(m.Params())
			i.asked <- i.params
		}
		i.line = rest
	}
	if !i.waits && i.read > maxIntroduction {
		i.over, i.line = true, nil
	}
}

// isAnswered reports whether answered is closed.
func (i *Introduction) isAnswered() bool { return closed.Is(i.answered) }

// Write writes to the client.
func (i *Introduction) Write(p []byte) (int, error) {
	i.mu.Lock()
	left := i.left // before: it may have its answer, and leave, before Write returns
	i.mu.Unlock()
	n, err := i.out.Write(p)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.waits && !i.over && !left && err == nil && bytes.Contains(p, []byte(`"protocolVersion"`)) {
		i.over = true
		close(i.answered)
	}
	return n, err
}
