package stdio

import (
	"bufio"
	"fmt"

	"github.com/mcp-sse/mcp-sse/connstate"
)

// maxTaken is how many messages the writer takes from the outbox at a time.
const maxTaken = 64

// writer writes the messages of a connection, one on each line.
type writer struct {
	out   *bufio.Writer
	c     connstate.ForTransport
	taken chan connstate.Event
}

// acceptEvent takes an event if there is room for it. The outbox calls it.
func (w *writer) acceptEvent(e connstate.Event) bool {
	select {
	case w.taken <- e:
		return true
	default:
		return false
	}
}

// writeEvents writes until the connection is closed, or a Write fails.
func (w *writer) writeEvents() error {
	for {
		select {
		case e := <-w.taken:
			if err := w.write(e); err != nil {
				return fmt.Errorf("serve stdio: write: %w", err)
			}
		case <-w.c.Done():
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
