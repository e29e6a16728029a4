package index

import (
	"os"
	"path/filepath"
	"sync"

	"github.com/mcp-sse/mcp-sse/docsearch/index/internal/vectors"
)

// meaning is the vectors of a folder. There are two files while another model than before
// makes them: those of the model before answer until the others are complete. A file has the
// vectors of one model, which its header names, so vectors of two models are never compared.
type meaning struct {
	embedding sync.Mutex // held by a call that makes vectors

	formers *formers

	mu       sync.RWMutex  // guards the rest; not held by the calls of a File
	path     string        // of the vectors that answer
	made     *vectors.File // by the Embedder; nil: there is none
	former   *vectors.File // by the model before; nil when made is complete
	formerBy Embedder
	before   string // the model before, as the vectors name it
}

// open opens the files of vectors in the directory of a folder.
func (m *meaning) open(dir string, embedder Embedder, shared *formers) {
	model := vectorsName(embedder)
	m.formers = shared
	next := filepath.Join(dir, nextVectors)
	m.path, m.made = filepath.Join(dir, vectorsFile), new(vectors.File)
	m.before = vectors.ModelOf(m.path)
	if m.before != "" && m.before != model {
		m.formerBy = shared.take(m.before)
	}
	if m.formerBy != nil {
		m.former = new(vectors.File)
		m.former.Open(m.path, m.before)
		m.made.Open(next, model)
		return
	}
	if m.before != model && vectors.ModelOf(next) == model {
		_ = os.Rename(next, m.path) // else they are made again
	}
	_ = os.Remove(next)
	m.made.Open(m.path, model)
}

// vectorsName returns the name of the model in the header of vectors. The model of an endpoint has
// the address in its name: two endpoints may give one name to two models.
func vectorsName(e Embedder) string {
	if remote, ok := e.(interface{ Address() string }); ok {
		return e.Model() + "@" + remote.Address()
	}
	return e.Model()
}

// current returns the vectors of the Embedder, complete or not.
func (f *folder) current() *vectors.File {
	f.meaning.mu.RLock()
	defer f.meaning.mu.RUnlock()
	return f.meaning.made
}

// answering returns the vectors that answer queries, and the Embedder of their model.
func (f *folder) answering(now Embedder) (*vectors.File, Embedder) {
	f.meaning.mu.RLock()
	defer f.meaning.mu.RUnlock()
	if f.meaning.former != nil {
		return f.meaning.former, f.meaning.formerBy
	}
	return f.meaning.made, now
}

// FormerModel returns the name of the model before that still answers in a folder, "" if the Embedder has made the
// vectors of all folders. In some folders the Embedder may answer, and in others a model before.
func (x *Index) FormerModel() string {
	all, err := x.all()
	if err != nil {
		return "" // nothing answers: it is closed
	}
	for _, f := range all {
		if _, by := f.answering(x.opts.Embedder); by != x.opts.Embedder {
			return by.Model()
		}
	}
	return ""
}

// complete has the vectors of the Embedder answer in place of those of the model before.
func (m *meaning) complete() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.former == nil {
		return nil
	}
	m.forget()
	return m.made.Move(m.path)
}

// forget closes the vectors of the model before, if there are any. The caller holds m.mu.
func (m *meaning) forget() {
	if m.former == nil {
		return
	}
	m.former.Close()
	m.former, m.formerBy = nil, nil
	m.formers.give(m.before)
}

func (m *meaning) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget()
	if m.made != nil {
		m.made.Close()
	}
}
