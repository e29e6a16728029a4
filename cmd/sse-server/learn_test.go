package main

import (
	"io"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// leavesWithItsAnswer is a client that ends its input once it has its answer, before the program's Write returns.
type leavesWithItsAnswer struct{ of *introduction }

func (w leavesWithItsAnswer) Write(p []byte) (int, error) {
	_, _ = w.of.Read(make([]byte, 1))
	return len(p), nil
}

// A client that leaves as soon as it has its answer has had it.
func TestAClientThatLeavesWithItsAnswerIsAnswered(t *testing.T) {
	r, w := io.Pipe()
	client := newIntroduction(r, nil)
	client.out = leavesWithItsAnswer{client}
	go func() { // ends with the pipe
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`+"\n")
		_ = w.Close()
	}()
	_, err := client.Read(make([]byte, 1<<10))
	ssetest.Must(t, err)
	_, err = client.Write([]byte(`{"result":{"protocolVersion":"x"}}`))
	ssetest.Must(t, err)
	ssetest.Want(t, "answered", client.isAnswered(), true)
}
