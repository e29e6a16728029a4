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

	mu       sync.RWMutex  // guards the rest; not held by the calls of a File
	path     string        // of the vectors that answer
	made     *vectors.File // by the Embedder; nil: there is none
	former   *vectors.File // by the model before; nil when made is complete
	formerBy Embedder
}

// open opens the files of vectors in the directory of a folder.
func (m *meaning) open(dir string, o Options) {
	model := o.Embedder.Model()
	next := filepath.Join(dir, nextVectors)
	m.path, m.made = filepath.Join(dir, vectorsFile), new(vectors.File)
	before := vectors.ModelOf(m.path)
	if before != "" && before != model && o.Former != nil {
		m.formerBy = o.Former(before)
	}
	if m.formerBy != nil {
		m.former = new(vectors.File)
		m.former.Open(m.path, before)
		m.made.Open(next, model)
		return
	}
	if before != model && vectors.ModelOf(next) == model {
		_ = os.Rename(next, m.path) // else they are made again
	}
	_ = os.Remove(next)
	m.made.Open(m.path, model)
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

// complete has the vectors of the Embedder answer in place of those of the model before.
func (m *meaning) complete() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.former == nil {
		return nil
	}
	m.former.Close()
	m.former, m.formerBy = nil, nil
	return m.made.Move(m.path)
}

func (m *meaning) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, file := range []*vectors.File{m.made, m.former} {
		if file != nil {
			file.Close()
		}
	}
}
