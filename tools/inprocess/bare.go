package main

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
)

// bareRoom is how many answers of one connection may wait.
const bareRoom = 64

// bare serves the echo over HTTP+SSE with net/http alone and one channel for each
// connection: the least that any server of this transport does. It checks, limits and
// times nothing.
type bare struct {
	streams sync.Map // id → chan []byte
	last    atomic.Int64
}

func newBare() http.Handler {
	b := &bare{}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /sse", b.stream)
	routes.HandleFunc("POST /message/{id}", b.message)
	routes.HandleFunc("POST /mcp", serveBare)
	routes.HandleFunc("DELETE /mcp", func(http.ResponseWriter, *http.Request) {})
	return routes
}

func (b *bare) stream(w http.ResponseWriter, r *http.Request) {
	id := strconv.FormatInt(b.last.Add(1), 10)
	out := make(chan []byte, bareRoom)
	b.streams.Store(id, out)
	defer b.streams.Delete(id)
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	write := func(event string, data []byte) {
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data) // a client that is gone ends the context
		_ = control.Flush()
	}
	write("endpoint", []byte("/message/"+id))
	for {
		select {
		case data := <-out:
			write("message", data)
		case <-r.Context().Done():
			return
		}
	}
}

func (b *bare) message(w http.ResponseWriter, r *http.Request) {
	out, ok := b.streams.Load(r.PathValue("id"))
	if !ok {
		http.NotFound(w, r)
		return
	}
	answer, err := answerBody(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if answer != nil {
		out.(chan []byte) <- answer
	}
	w.WriteHeader(http.StatusAccepted)
}

// answerBody returns the response to the message in a body, nil for none.
func answerBody(r *http.Request) ([]byte, error) {
	msg := make([]byte, max(0, r.ContentLength))
	if _, err := io.ReadFull(r.Body, msg); err != nil {
		return nil, err
	}
	return answer(msg), nil
}

// serveBare serves the echo over Streamable HTTP with net/http alone: the answer to a POST
// is its response. It checks, limits and times nothing, and has one session for all.
func serveBare(w http.ResponseWriter, r *http.Request) {
	answer, err := answerBody(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if answer == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // a client that is gone needs no answer
}
