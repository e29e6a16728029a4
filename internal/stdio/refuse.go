package stdio

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/mcp-sse/mcp-sse/internal/wire"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// maxRefused bounds a line of a client that is refused, in bytes: nobody knows the id in a longer one.
const maxRefused = 4 << 20

// Refuse answers each request of a client that writes to in with an error, and each line that cannot be read with the
// same one without an id, until in ends or out breaks. It is for a program that cannot serve: its client hears why.
func Refuse(in io.Reader, out io.Writer, why *jsonrpc.Error) {
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := wire.ReadLine(lines, maxRefused)
		isTooLong := errors.Is(err, jsonrpc.ErrTooLong)
		if isTooLong {
			err = wire.SkipLine(lines)
		}
		m, invalid := wire.ParseClient(line)
		isUnreadable := isTooLong || invalid != nil && len(bytes.TrimSpace(line)) > 0
		var id jsonrpc.ID
		if invalid == nil {
			id = m.ID
		}
		if isUnreadable || invalid == nil && m.Kind == jsonrpc.Request {
			if _, broken := out.Write(append(jsonrpc.NewError(id, why), '\n')); broken != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
