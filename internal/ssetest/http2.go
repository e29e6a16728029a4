package ssetest

import (
	"bytes"
	"errors"
	"io"
	"net"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Windowless is a client of HTTP/2 that lets nothing of the body of an answer be written.
type Windowless struct {
	framer  *http2.Framer
	block   bytes.Buffer // of head
	head    *hpack.Encoder
	streams uint32        // that it has opened
	resets  chan struct{} // one for each stream that the server has reset; closed at the end
}

// NewWindowless begins to speak on a connection, whose end ends it.
func NewWindowless(conn net.Conn) *Windowless {
	c := &Windowless{framer: http2.NewFramer(conn, conn), resets: make(chan struct{}, 1000)}
	c.head = hpack.NewEncoder(&c.block)
	go func() { // ends with the connection
		defer close(c.resets)
		for {
			frame, err := c.framer.ReadFrame()
			if err != nil {
				return
			}
			if _, ok := frame.(*http2.RSTStreamFrame); ok {
				c.resets <- struct{}{}
			}
		}
	}()
	_, _ = io.WriteString(conn, http2.ClientPreface) // AwaitResets tells of a broken connection
	_ = c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	_ = c.framer.WriteSettingsAck()
	return c
}

// Send sends a request: a GET, or with a body a POST.
func (c *Windowless) Send(path, body string) {
	method := "GET"
	if body != "" {
		method = "POST"
	}
	c.block.Reset()
	for _, field := range [][2]string{
		{":method", method}, {":scheme", "http"}, {":authority", "localhost"}, {":path", path}, {"content-type",
			"application/json"}, {"accept", "*/*"},
	} {
		_ = c.head.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
	}
	c.streams++
	id := 2*c.streams - 1
	_ = c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.block.Bytes(), EndHeaders: true,
		EndStream: body == ""})
	if body != "" {
		_ = c.framer.WriteData(id, true, []byte(body))
	}
}

// AwaitResets waits until the server has given up all answers.
func (c *Windowless) AwaitResets() error {
	for range c.streams {
		if _, ok := <-c.resets; !ok {
			return errors.New("the connection has ended before all answers were given up")
		}
	}
	return nil
}
