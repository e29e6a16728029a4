package ssetest

import (
	"bytes"
	"sync"
)

// Output collects what a program prints, or a log. It is safe for concurrent use.
type Output struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

// Write adds to it.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

// String returns all of it.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// Tail returns its end: enough to see what went wrong.
func (o *Output) Tail() string {
	s := o.String()
	return s[max(0, len(s)-32<<10):]
}
