// Package ssetest has what the tests of several packages share: checks, requests, and clients
// and readers of event streams, logs and metrics.
package ssetest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Event is one block of an event stream.
type Event struct {
	ID, Name, Data, Retry string
	Comment               string // the text of a comment line; such a block has no fields
	Lines                 int    // the number of data lines
	Raw                   string // the block as it came, without its last line break
}

// IsComment reports whether the block is a comment, such as a heartbeat.
func (e Event) IsComment() bool { return strings.HasPrefix(e.Raw, ":") }

// LineReader is the part of a bufio.Reader that Read needs.
type LineReader interface {
	ReadSlice(delim byte) ([]byte, error)
}

var errEmptyBlock = errors.New("a block without lines")

// Read reads one block. It is strict: a line that the gateway never writes, such
// as a field without a value, is an error. It returns io.EOF at the end of a
// stream, and io.ErrUnexpectedEOF at an end within a block.
func Read(in LineReader) (Event, error) {
	var e Event
	var raw strings.Builder
	for {
		line, err := readLine(in)
		switch {
		case err == io.EOF && raw.Len() > 0:
			return e, io.ErrUnexpectedEOF
		case err != nil:
			return e, err
		case len(line) == 0 && raw.Len() == 0:
			return e, errEmptyBlock
		case len(line) == 0:
			e.Raw = raw.String()
			return e, nil
		}
		if raw.Len() > 0 {
			raw.WriteByte('\n')
		}
		raw.Write(line)
		field, value, ok := bytes.Cut(line, []byte(": "))
		if !ok || !e.set(field, value) {
			return e, fmt.Errorf("the line %q is not a field", line)
		}
	}
}

// ReadAny reads one block of any server: it takes what the standard allows for an
// event with one line of data (WHATWG HTML, section 9.2). It leaves Raw empty, so
// that a benchmark measures the server and not its client.
func ReadAny(in LineReader) (Event, error) {
	var e Event
	for {
		line, err := readLine(in)
		if err != nil {
			return e, err
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 {
			return e, nil
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		e.set(field, bytes.TrimPrefix(value, []byte(" ")))
	}
}

// readLine returns the next line without its line feed.
func readLine(in LineReader) ([]byte, error) {
	var long []byte
	for {
		part, err := in.ReadSlice('\n')
		switch {
		case err == nil && long == nil:
			return part[:len(part)-1], nil
		case err == nil:
			return append(long, part[:len(part)-1]...), nil
		case err == io.EOF && len(part)+len(long) > 0:
			return nil, io.ErrUnexpectedEOF
		case err != bufio.ErrBufferFull:
			return nil, err
		}
		long = append(long, part...)
	}
}

// set sets a field, and reports whether there is one of that name.
func (e *Event) set(field, value []byte) bool {
	switch string(field) {
	case "id":
		e.ID = string(value)
	case "event":
		e.Name = string(value)
	case "retry":
		e.Retry = string(value)
	case "data":
		e.Data = string(value)
		e.Lines++
	case "":
		e.Comment = string(value)
	default:
		return false
	}
	return true
}
