package stdio

import (
	"bufio"
	"errors"
	"io"

	"github.com/mcp-sse/mcp-sse/internal/wire"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// maxRefused bounds a line of a client that is refused, in bytes. A longer one gets no answer.
const maxRefused = 4 << 20

// Refuse answers each request of a client that writes to in with an error, until in ends or out breaks. It is for a
// program that cannot serve: its client hears why.
func Refuse(in io.Reader, out io.Writer, why *jsonrpc.Error) {
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := wire.ReadLine(lines, maxRefused)
		if errors.Is(err, jsonrpc.ErrTooLong) {
			err = wire.SkipLine(lines)
		}
		if m, invalid := wire.ParseClient(line); invalid == nil && m.Kind == jsonrpc.Request {
			if _, broken := out.Write(append(jsonrpc.NewError(m.ID, why), '\n')); broken != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
