package load

import (
	"bytes"
	"crypto/rand"
	"iter"
	"sync"
)

// A secret is the prefix and what rand.Text returns: 128 bits from a cryptographic
// source, in 26 letters and digits that no encoding of text changes.
const (
	secretPrefix = "leaktest-"
	secretLength = len(secretPrefix) + 26
)

func newSecret() string { return secretPrefix + rand.Text() }

// register holds the call of each secret. It is safe for concurrent use.
type register struct {
	mu      sync.Mutex
	callers map[string]*call // guarded by mu
}

func (r *register) add(k *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.callers[k.secret] = k
}

// caller returns the call that has that secret, nil if none of this run has.
func (r *register) caller(secret []byte) *call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.callers[string(secret)]
}

// secrets returns all complete secrets in a text.
func secrets(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for {
			at := bytes.Index(text, []byte(secretPrefix))
			if at < 0 || len(text)-at < secretLength {
				return
			}
			text = text[at:]
			if isSecretText(text[len(secretPrefix):secretLength]) && !yield(text[:secretLength]) {
				return
			}
			text = text[len(secretPrefix):]
		}
	}
}

// isSecretText reports whether the text has only the letters of rand.Text.
func isSecretText(text []byte) bool {
	for _, c := range text {
		if (c < 'A' || c > 'Z') && (c < '2' || c > '7') {
			return false
		}
	}
	return true
}
