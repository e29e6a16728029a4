package index

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	"github.com/blevesearch/bleve/v2/mapping"
	index "github.com/blevesearch/bleve_index_api"
)

// version is of what the files of a folder contain. Another one is made anew.
const version = 1

// The names of the files of a folder.
const (
	wordsDir    = "words"   // of bleve
	vectorsFile = "vectors" // see vectors
	stateFile   = "state"
)

// The content of the state file. There is none while the folder is closed.
const (
	stateOpen    = "open"    // at the next Open: its process was killed
	stateChecked = "checked" // the same, and the files were found whole when it was opened
	stateSuspect = "suspect" // a read has failed
	stateDamaged = "damaged" // a read has failed though the files were whole
)

// folder is the index of one folder.
type folder struct {
	dir     string
	path    string // of the files
	log     *slog.Logger
	state   string // stateOpen or stateChecked
	words   bleve.Index
	vectors vectors
	failed  chan struct{} // closed when a goroutine of bleve has panicked
	fail    sync.Once
	// bleve could not write: what it has in memory cannot be read any more.
	unwritten atomic.Bool
	writing   sync.Mutex // held by a call that writes

	mu     sync.RWMutex // held by calls, and by close
	closed bool

	recordMu sync.Mutex // guards record, which calls that hold writing change
	record   record
}

// record is what the index stores of a folder beside its documents.
type record struct {
	Version   int            `json:"version"`
	Language  string         `json:"language"`
	Path      string         `json:"path"`
	Documents int            `json:"documents"`
	Passages  int            `json:"passages"`
	TextBytes int64          `json:"textBytes"`
	IndexedAt time.Time      `json:"indexedAt,omitzero"`
	Skipped   map[string]int `json:"skipped,omitempty"`
}

var recordKey = []byte("docsearch")

func (f *folder) stats() FolderStats {
	f.recordMu.Lock()
	defer f.recordMu.Unlock()
	r := f.record
	return FolderStats{Path: r.Path, Documents: r.Documents, Chunks: r.Passages, TextBytes: r.TextBytes,
		IndexedAt: r.IndexedAt, Skipped: maps.Clone(r.Skipped)}
}

// openings is held while bleve opens an index: it finds our callback in a global map.
var openings sync.Mutex

// openWords opens the index of words, or makes one if m is not nil.
func (f *folder) openWords(m mapping.IndexMapping) (err error) {
	path := filepath.Join(f.dir, wordsDir)
	config := map[string]any{"bolt_timeout": "5s", "asyncErrorCallbackName": path}
	openings.Lock()
	defer openings.Unlock()
	scorch.RegistryAsyncErrorCallbacks[path] = f.backgroundError
	defer delete(scorch.RegistryAsyncErrorCallbacks, path)
	if m != nil {
		f.words, err = bleve.NewUsing(path, m, scorch.Name, scorch.Name, config)
	} else {
		f.words, err = bleve.OpenUsing(path, config)
	}
	return err
}

// backgroundError is called by bleve's goroutines. One that panics has ended. One that
// cannot write would try again at once.
func (f *folder) backgroundError(err error, _ string) {
	f.log.Error("index not written", "path", f.dir, "err", err)
	if errors.Is(err, scorch.ErrAsyncPanic) {
		f.fail.Do(func() { close(f.failed) })
		return
	}
	f.unwritten.Store(true)
	time.Sleep(retryPause)
}

const retryPause = 100 * time.Millisecond

// createFolder makes the index of a folder.
func createFolder(dir string, m mapping.IndexMapping, r record, log *slog.Logger) (*folder, error) {
	f := &folder{dir: dir, path: r.Path, log: log, state: stateOpen, failed: make(chan struct{}), record: r}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = f.note(f.state)
	}
	if err == nil {
		err = f.openWords(m)
	}
	if err == nil {
		err = f.writeRecord(r)
	}
	if err != nil {
		f.close()
		return nil, classify(err)
	}
	return f, nil
}

// openFolder opens the index of a folder. It fails with ErrCorrupt if that is damaged.
func openFolder(dir, language string, log *slog.Logger) (f *folder, err error) {
	f = &folder{dir: dir, log: log, state: stateOpen, failed: make(chan struct{})}
	before, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, classify(err)
	}
	if string(before) == stateDamaged {
		return nil, fmt.Errorf("%w: it could not be read", ErrCorrupt)
	}
	if string(before) == stateSuspect {
		f.state = stateChecked
	}
	if err := f.note(f.state); err != nil {
		return nil, classify(err)
	}
	err = f.guarded(func() error {
		if err := f.openWords(nil); err != nil {
			return err
		}
		if err := f.readRecord(language); err != nil || len(before) == 0 {
			return err
		}
		return f.check()
	})
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *folder) readRecord(language string) error {
	data, err := f.words.GetInternal(recordKey)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &f.record); err != nil {
		return err
	}
	f.path = f.record.Path
	if r := f.record; r.Version != version || r.Language != language {
		return fmt.Errorf("it is of version %d and for language %q, not %d and %q", r.Version, r.Language, version, language)
	}
	return nil
}

// check compares the files of the words with their checksums.
func (f *folder) check() error {
	return f.read(func(r index.IndexReader) error {
		for _, s := range r.(*scorch.IndexSnapshot).Segments() {
			if s, ok := s.Segment().(interface{ Path() string }); ok {
				if err := checkSegment(s.Path()); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// checkSegment compares a file with the CRC-32 in its last bytes.
func checkSegment(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	sum := crc32.NewIEEE()
	if _, err := io.CopyN(sum, file, info.Size()-crc32.Size); err != nil {
		return err
	}
	var want [crc32.Size]byte
	if _, err := io.ReadFull(file, want[:]); err != nil {
		return err
	}
	if binary.BigEndian.Uint32(want[:]) != sum.Sum32() {
		return fmt.Errorf("%s has a wrong checksum", path)
	}
	return nil
}

// note writes the state file, "" removes it.
func (f *folder) note(state string) error {
	path := filepath.Join(f.dir, stateFile)
	if state == "" {
		return os.Remove(path)
	}
	return os.WriteFile(path, []byte(state), 0o600)
}

// call runs a function that uses the index, unless that is closed. If the index cannot be
// read, it has the next Open check it.
func (f *folder) call(op string, run func() error) error {
	err := f.try(run)
	if f.unwritten.Load() {
		f.reopen()
		if errors.Is(err, ErrCorrupt) {
			err = f.try(run)
		}
	}
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrCorrupt) {
		f.suspect(err)
	}
	return fmt.Errorf("%s: %w", op, err)
}

func (f *folder) try(run func() error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed {
		return ErrClosed
	}
	return f.guarded(run)
}

// reopen goes back to what is on the disk.
func (f *folder) reopen() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || !f.unwritten.Load() {
		return
	}
	err := f.guarded(func() error { return errors.Join(f.words.Close(), f.openWords(nil)) })
	f.unwritten.Store(false)
	if err != nil {
		f.closed = true
		f.log.Error("index not opened again", "path", f.dir, "err", err)
	}
}

// suspect notes that a read has failed: the second time, with whole files, is damage.
func (f *folder) suspect(cause error) {
	state := stateSuspect
	if f.state == stateChecked {
		state = stateDamaged
	}
	f.log.Error("index cannot be read", "path", f.dir, "state", state, "err", cause)
	if err := f.note(state); err != nil {
		f.log.Error("state of the index not written", "err", err)
	}
}

// guarded runs a function that uses the index. Damaged files make bleve panic, and
// truncated ones, which are mapped, fault.
func (f *folder) guarded(run func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			f.log.Error("index panicked", "path", f.dir, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: %v", ErrCorrupt, p)
		}
		err = classify(err)
	}()
	return run()
}

// read runs a function on one state of the index.
func (f *folder) read(run func(r index.IndexReader) error) error {
	low, err := f.words.Advanced()
	if err != nil {
		return err
	}
	r, err := low.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	return run(r)
}

// write writes a batch, and the record with it. When it returns, both are on the disk.
func (f *folder) write(b *bleve.Batch, r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	b.SetInternal(recordKey, data)
	done := make(chan error, 1)
	go func() { done <- f.words.Batch(b) }() // never ends if bleve's writer has panicked
	select {
	case err = <-done:
	case <-f.failed:
		err = fmt.Errorf("%w: it cannot be written any more", ErrCorrupt)
	}
	if err == nil {
		f.recordMu.Lock()
		f.record = r
		f.recordMu.Unlock()
	}
	return err
}

func (f *folder) writeRecord(r record) error { return f.write(f.words.NewBatch(), r) }

// close waits for running calls and closes the index.
func (f *folder) close() (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	f.vectors.close()
	if f.words == nil {
		return nil
	}
	err = f.guarded(f.words.Close)
	if state, _ := os.ReadFile(filepath.Join(f.dir, stateFile)); string(state) == f.state {
		err = errors.Join(err, f.note(""))
	}
	return err
}

// bytes returns how much space the index takes on the disk.
func (f *folder) bytes() (n int64) {
	_ = filepath.WalkDir(f.dir, func(_ string, e os.DirEntry, err error) error { // files come and go
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}
