package wire

import (
	"bufio"
	"bytes"
	"errors"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// ReadLine returns the next line without its end and without white space around it. The
// line belongs to the caller. The last line may come with io.EOF, without its end.
// ReadLine fails with jsonrpc.ErrTooLong at a line over limit bytes; SkipLine then discards the
// rest of that line.
func ReadLine(in *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		more := errors.Is(err, bufio.ErrBufferFull)
		if !more {
			line = bytes.TrimSpace(line)
		}
		switch {
		case len(line) > limit:
			if err == nil {
				_ = in.UnreadByte() // the end of the line, for SkipLine
			}
			return nil, jsonrpc.ErrTooLong
		case !more:
			return line, err
		}
	}
}

// SkipLine reads to the end of the current line.
func SkipLine(in *bufio.Reader) error {
	for {
		if _, err := in.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}
