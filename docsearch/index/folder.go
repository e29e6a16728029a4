package index

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	"github.com/blevesearch/bleve/v2/mapping"
	index "github.com/blevesearch/bleve_index_api"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
)

// version is of what the files of a folder contain. Another one is made anew.
const version = 4

// The names of the files of a folder.
const (
	wordsDir    = "words"        // of bleve
	vectorsFile = "vectors"      // see package vectors
	nextVectors = "vectors.next" // of another model, until all are made
	stateFile   = "state"        // the number of writes, or damaged; absent while the folder is open
	pathFile    = "path"         // of the folder's files, for when the words are damaged
)

const damaged = "damaged"

// errLost means that bleve could not read its last state, and has gone back to an older one.
var errLost = errors.New("the last changes are lost")

// folder is the index of one folder.
type folder struct {
	dir     string
	path    string // of the files
	log     *slog.Logger
	record  atomic.Pointer[record] // what was written last
	meaning meaning
	writing sync.Mutex // held by a call that writes
	// Has an error when a goroutine of bleve has failed, so that what is in memory cannot
	// be read any more, or a call has. The next call opens the index again.
	failed chan error

	mu     sync.RWMutex // held by calls, and by those that open and close words
	words  bleve.Index  // nil if it could not be opened
	closed bool
}

// record is what the index stores of a folder beside its documents.
type record struct {
	Version  int    `json:"version"`
	Language string `json:"language"`
	Writes   int    `json:"writes"`
	api.Folder
}

var recordKey = []byte("docsearch")

// openFolder opens the index in a directory, or makes one for the folder at path. It fails
// with ErrCorrupt if the index is damaged.
func (x *Index) openFolder(dir, path string) (*folder, error) {
	f := &folder{dir: dir, log: x.log, failed: make(chan error, 1)}
	err := f.guarded(func() error {
		if path == "" {
			if err := f.open(x.opts.Language); err != nil {
				return err
			}
			return f.notePath(f.record.Load().Path)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := f.notePath(path); err != nil {
			return err
		}
		if err := f.openWords(x.mapping); err != nil {
			return err
		}
		return f.write(f.words.NewBatch(), record{Version: version, Language: x.opts.Language,
			Folder: api.Folder{Path: path}})
	})
	if err != nil {
		f.fail(err)
		_ = f.close() // it is of no use
		return nil, err
	}
	f.path = f.record.Load().Path
	if x.opts.Embedder != nil {
		f.meaning.open(dir, x.opts.Embedder, &x.formers)
	}
	return f, nil
}

// notePath writes the path of the folder, unless it is there.
func (f *folder) notePath(path string) error {
	file := filepath.Join(f.dir, pathFile)
	if noted, _ := os.ReadFile(file); string(noted) == path {
		return nil
	}
	return os.WriteFile(file, []byte(path), 0o600)
}

// open opens the index. If its process was killed, or bleve has gone back to an older
// state, files may be damaged.
func (f *folder) open(language string) error {
	state := filepath.Join(f.dir, stateFile)
	before, err := os.ReadFile(state)
	known := len(before) > 0
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if string(before) == damaged {
		return fmt.Errorf("%w: it could not be read", ErrCorrupt)
	}
	if err := os.Remove(state); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := f.openWords(nil); err != nil {
		return err
	}
	r := f.record.Load()
	switch {
	case r.Version != version || r.Language != language:
		return fmt.Errorf("it is of version %d and for language %q, not %d and %q", r.Version, r.Language, version,
			language)
	case known && string(before) != strconv.Itoa(r.Writes):
		return errLost
	case known:
		return nil
	}
	return f.check()
}

// openings is held while bleve opens an index: it finds our callback in a global map.
var openings sync.Mutex

// openWords opens the index of words, or makes one if m is not nil.
func (f *folder) openWords(m mapping.IndexMapping) (err error) {
	path := filepath.Join(f.dir, wordsDir)
	config := map[string]any{"bolt_timeout": "5s", "asyncErrorCallbackName": path,
		"scorchMergePlanOptions": map[string]any{"MaxSegmentSize": maxSegment}}
	openings.Lock()
	defer openings.Unlock()
	scorch.RegistryAsyncErrorCallbacks[path] = func(err error, _ string) {
		f.log.Error("index not written", "path", f.dir, "err", err)
		f.fail(err)
		time.Sleep(retryPause) // bleve would try again at once
	}
	defer delete(scorch.RegistryAsyncErrorCallbacks, path)
	f.words = nil
	if m != nil {
		words, err := bleve.NewUsing(path, m, scorch.Name, scorch.Name, config)
		if err == nil {
			f.words = words
		}
		return err
	}
	words, err := bleve.OpenUsing(path, config)
	if err != nil {
		return err
	}
	f.words = words
	data, err := words.GetInternal(recordKey)
	r := &record{}
	if err == nil {
		err = json.Unmarshal(data, r)
	}
	if before := f.record.Load(); err == nil && before != nil && r.Writes < before.Writes {
		err = errLost
	}
	if err == nil {
		f.record.Store(r)
	}
	return err
}

const (
	retryPause = 100 * time.Millisecond
	batchTime  = 10 * time.Second // for a batch to end when bleve has failed
	maxSegment = 25_000           // passages, in files that are merged, and mapped into memory meanwhile
)

// closeWords closes the index of words. After a failure, a batch may wait for ever and
// hold the lock of bleve.Index, so the index behind it is closed.
func (f *folder) closeWords() error {
	if f.words == nil {
		return nil
	}
	if len(f.failed) == 0 {
		return f.words.Close()
	}
	low, err := f.words.Advanced()
	if err == nil {
		err = low.Close()
	}
	return err
}

// segment is a file of the words, which is mapped into memory.
type segment interface {
	Path() string
	CRC() uint32
	Data() []byte
}

// segments calls run with each file of the words.
func (f *folder) segments(run func(segment) error) error {
	return f.view(func(r index.IndexReader) error {
		for _, s := range r.(*scorch.IndexSnapshot).Segments() {
			if s, ok := s.Segment().(segment); ok { // else it is in memory
				if err := run(s); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// check compares the files of the words with the CRC-32 in their last bytes.
func (f *folder) check() error {
	return f.segments(func(s segment) error {
		sum, err := checksum(s.Path())
		if err == nil && sum != s.CRC() {
			err = fmt.Errorf("%s has a wrong checksum", s.Path())
		}
		return err
	})
}

func checksum(path string) (uint32, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	sum := crc32.NewIEEE()
	_, err = io.CopyN(sum, file, info.Size()-crc32.Size)
	return sum.Sum32(), err
}

// fail has the next call open the index again.
func (f *folder) fail(err error) {
	select {
	case f.failed <- err:
	default: // it does so already
	}
}

// call runs a function that uses the index, unless that is closed. If the index cannot be
// read, call opens it again and tries once more; if that fails too, it is damaged.
func (f *folder) call(op string, run func() error) (err error) {
	for range 2 {
		err = f.reopen()
		if err == nil {
			err = f.try(run)
		}
		if !errors.Is(err, ErrCorrupt) {
			break
		}
		f.log.Error("index cannot be read", "path", f.dir, "err", err)
		f.fail(err)
	}
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrCorrupt) {
		err = errors.Join(err, os.WriteFile(filepath.Join(f.dir, stateFile), []byte(damaged), 0o600))
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

// reopen opens the index again if it has failed.
func (f *folder) reopen() error {
	if len(f.failed) == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || len(f.failed) == 0 {
		return nil
	}
	return f.guarded(func() error {
		if err := f.closeWords(); err != nil {
			f.log.Warn("index not closed", "path", f.dir, "err", err)
		}
		err := f.openWords(nil)
		if err == nil {
			err = f.check()
		}
		if err == nil {
			<-f.failed
		}
		return err
	})
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

// read is call with one state of the index.
func (f *folder) read(op string, run func(r index.IndexReader) error) error {
	return f.call(op, func() error { return f.view(run) })
}

// view runs a function on one state of the index, in a call.
func (f *folder) view(run func(r index.IndexReader) error) error {
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

// change is call for a function that writes, one at a time.
func (f *folder) change(op string, run func() error) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	return f.call(op, run)
}

// write writes a batch, and the record with it. When it returns, both are on the disk.
func (f *folder) write(b *bleve.Batch, r record) error {
	r.Writes++
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	b.SetInternal(recordKey, data)
	words, done := f.words, make(chan error, 1)
	go func() { done <- words.Batch(b) }() // never ends if a goroutine of bleve has panicked, or closeWords comes first
	select {
	case err = <-done:
	case err = <-f.failed:
		f.fail(err)
		select {
		case err = <-done:
		case <-time.After(batchTime):
		}
	}
	if err == nil {
		f.record.Store(&r)
	}
	return err
}

// release gives back the memory of what was read of the files.
func (f *folder) release() error {
	return f.try(func() error {
		if len(f.failed) > 0 { // the next call opens it again
			return nil
		}
		return f.segments(func(s segment) error {
			release(s.Data())
			return nil
		})
	})
}

// close waits for running calls and closes the index.
func (f *folder) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	f.meaning.close()
	if err := f.guarded(f.closeWords); err != nil || len(f.failed) > 0 {
		return err
	}
	writes := []byte(strconv.Itoa(f.record.Load().Writes))
	if err := os.WriteFile(filepath.Join(f.dir, stateFile), writes, 0o600); err != nil {
		f.log.Warn("state of the index not written", "err", err) // the next Open checks the files
	}
	return nil
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
