package wire_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/wire"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// FuzzReadLine compares ReadLine with bytes.Split, for buffers larger and smaller than
// the limit.
func FuzzReadLine(f *testing.F) {
	f.Add([]byte("a\nbc\n\n def \r\n"), uint8(2))
	f.Add([]byte("too long\nok"), uint8(3))
	f.Add(append(bytes.Repeat([]byte("x"), 100), "\ny\n"...), uint8(50))
	f.Fuzz(func(t *testing.T, data []byte, limit uint8) {
		in := bufio.NewReaderSize(bytes.NewReader(data), 16)
		lines := bytes.Split(data, []byte("\n"))
		for i, want := range lines {
			long := len(want) > int(limit)
			want = bytes.TrimSpace(want)
			got, err := wire.ReadLine(in, int(limit))
			switch {
			case errors.Is(err, jsonrpc.ErrTooLong) && long:
				if err := wire.SkipLine(in); (err == io.EOF) != (i == len(lines)-1) {
					t.Fatalf("line %d: skipped with %v", i, err)
				}
			case (err == io.EOF) != (i == len(lines)-1), err != nil && err != io.EOF, !bytes.Equal(got, want), len(got) > int(limit):
				t.Fatalf("line %d: got %q, %v, want %q", i, got, err, want)
			}
		}
	})
}
