package stdio

import (
	"bufio"
	"fmt"
	"io"
	"sync"

	"github.com/mcp-sse/mcp-sse/connstate"
)

// maxTaken is how many messages the writer takes from the outbox at a time.
const maxTaken = 64

// writer writes the messages of a connection, one on each line.
type writer struct {
	out     *bufio.Writer
	c       *connstate.Connection
	taken   chan connstate.Event
	stopped chan struct{} // closed when the connection is
	once    sync.Once
}

func newWriter(out io.Writer, c *connstate.Connection) *writer {
	return &writer{
		out: bufio.NewWriterSize(out, 64<<10), c: c,
		taken: make(chan connstate.Event, maxTaken), stopped: make(chan struct{}),
	}
}

// take takes an event if there is room for it. The outbox calls it.
func (w *writer) take(e connstate.Event) bool {
	select {
	case w.taken <- e:
		return true
	default:
		return false
	}
}

// stop ends run. The connection calls it when it is closed.
func (w *writer) stop() { w.once.Do(func() { close(w.stopped) }) }

// run writes until the connection is closed, or a Write fails.
func (w *writer) run() error {
	for {
		select {
		case e := <-w.taken:
			if err := w.write(e); err != nil {
				return fmt.Errorf("serve stdio: write: %w", err)
			}
		case <-w.stopped:
			return nil
		}
	}
}

// write writes a message, and those that have been taken meanwhile.
func (w *writer) write(e connstate.Event) error {
	size := 0
	for more := true; more; {
		_, _ = w.out.Write(e.Data) // Flush returns the first error
		_ = w.out.WriteByte('\n')
		size += e.Size()
		select {
		case e = <-w.taken:
		default:
			more = false
		}
	}
	if err := w.out.Flush(); err != nil {
		return err
	}
	w.c.SawWrite()
	w.c.Written(size)
	return nil
}
