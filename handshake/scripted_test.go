package handshake

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// scripted is a server that answers a request, a second later, with what answer returns; empty: it does not answer.
type scripted struct {
	starts int
	fails  error // of the starts; nil: they work
	answer func(m *jsonrpc.Message) string
}

func (s *scripted) Dial(context.Context) (jsonrpc.Conn, error) {
	s.starts++
	if s.fails != nil {
		return nil, s.fails
	}
	return &scriptedConn{answer: s.answer, said: make(chan []byte, 16), over: make(chan struct{})}, nil
}

type scriptedConn struct {
	answer func(m *jsonrpc.Message) string
	said   chan []byte
	once   sync.Once
	over   chan struct{}
}

func (c *scriptedConn) Send(msg []byte) error {
	m, err := jsonrpc.Parse(msg)
	if err != nil || m.Kind != jsonrpc.Request || c.answer == nil {
		return err
	}
	if answer := c.answer(m); answer != "" {
		time.AfterFunc(time.Second, func() { c.said <- []byte(answer) })
	}
	return nil
}

func (c *scriptedConn) Recv() ([]byte, error) {
	select {
	case msg := <-c.said:
		return msg, nil
	case <-c.over:
		return nil, io.EOF
	}
}

func (c *scriptedConn) Close() error {
	c.once.Do(func() { close(c.over) })
	return nil
}
