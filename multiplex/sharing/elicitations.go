package sharing

import "slices"

// maxElicitations bounds the elicitations of a session; the oldest are forgotten.
const maxElicitations = 1024

// Elicitations records which client the server has sent to a URL, by elicitation id.
type Elicitations[C comparable] struct {
	clients map[string]C
	order   []string
}

// Add records an elicitation of a client.
func (e *Elicitations[C]) Add(id string, c C) {
	if e.clients == nil {
		e.clients = make(map[string]C)
	}
	if _, ok := e.clients[id]; !ok {
		e.order = append(e.order, id)
	}
	e.clients[id] = c
	if len(e.order) > maxElicitations {
		delete(e.clients, e.order[0])
		e.order = e.order[1:]
	}
}

// Complete forgets an elicitation and returns its client.
func (e *Elicitations[C]) Complete(id string) (C, bool) {
	c, ok := e.clients[id]
	if ok {
		delete(e.clients, id)
		e.order = slices.DeleteFunc(e.order, func(other string) bool { return other == id })
	}
	return c, ok
}

// Leave forgets the elicitations of a client.
func (e *Elicitations[C]) Leave(c C) {
	e.order = slices.DeleteFunc(e.order, func(id string) bool {
		if e.clients[id] != c {
			return false
		}
		delete(e.clients, id)
		return true
	})
}
