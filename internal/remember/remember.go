// Package remember keeps what MCP servers answered to initialize and to their lists, so that a client
// can have both before its server has started.
//
//	Store ── remember.go  one for a program: a directory of files, or memory alone
//	  └─ Server           one for each server: what it said, by what clients declare
//	       └─ Answers ── answers.go   the result of initialize, and the pages of the lists
//
// A file has what one server said, and is named by its identity: all that decides what it says. So a
// server with another command, program or environment has another file, and the old one is dropped
// when there are many. Programs share the directory: what another one has learned is read when it is
// needed, and kept when the file is written.
package remember

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

const (
	// layout is the version of the files. Files of another one are ignored, and written anew.
	layout = 1
	// maxAnswers bounds what is kept of one server for clients that declare different things, and
	// maxBytes all of it together.
	maxAnswers = 32
	maxBytes   = 8 << 20
	// maxFiles bounds the files in the directory.
	maxFiles = 256
	// rewriteAfter is the age of what a file says after which it is written again although nothing has
	// changed: so the time in it is never older than this when the server has answered lately.
	rewriteAfter = time.Hour
)

// Store keeps what servers said. It is safe for concurrent use.
type Store struct {
	dir string // empty: nothing is written
	log *slog.Logger

	mu      sync.Mutex // guards servers
	servers map[string]*Server
}

// Open returns the Store whose files are in a directory, which it makes when it first writes. With an
// empty name it only keeps things in memory. Files that it cannot read or use are as if they were not
// there, and a line in the log says so.
func Open(dir string, log *slog.Logger) *Store {
	return &Store{dir: dir, log: log, servers: make(map[string]*Server)}
}

// Server returns what is known of the server with an identity: a text that is the same as long as
// the server says the same, as far as that can be known.
func (s *Store) Server(identity string) *Server {
	sum := sha256.Sum256([]byte(identity))
	name := hex.EncodeToString(sum[:16])
	s.mu.Lock()
	defer s.mu.Unlock()
	server := s.servers[name]
	if server == nil {
		if len(s.servers) >= maxFiles { // those in use go on, and share the files
			clear(s.servers)
		}
		server = &Server{store: s, name: name}
		s.servers[name] = server
	}
	return server
}

// Server is what is known of one server. It is safe for concurrent use.
type Server struct {
	store *Store
	name  string // of the file, without its ending

	disk sync.Mutex  // held while the file is read or written, and guards seen; taken before mu
	seen fs.FileInfo // the file as it was last read or written; nil: there was none

	mu      sync.Mutex // guards what follows; never held while the disk is waited for
	answers map[string]*Answers
	bytes   int
	written time.Time // when the file was last written
}

// file is what a file has.
type file struct {
	Layout  int                 `json:"layout"`
	Server  string              `json:"server"`
	Answers map[string]*Answers `json:"answers"`
}

// Answers returns what the server said to clients that declare the same, nil if that is unknown. It looks
// whether the file has changed: another program may have learned more, or somebody has deleted it.
func (s *Server) Answers(declared string) *Answers {
	s.readAgain()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answers[declared]
}

// AnswersAt returns what the server said last to any client that asked for a protocol version, nil if that
// is unknown. principal is that of [DeclaredBy].
func (s *Server) AnswersAt(version, principal string) (last *Answers) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for declared, a := range s.answers {
		if isDeclared(declared, version, principal) && (last == nil || a.Learned.After(last.Learned)) {
			last = a
		}
	}
	return last
}

// Last returns what the server said last to any client, nil if nothing is known of it.
func (s *Server) Last() (last *Answers) {
	s.readAgain()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.answers {
		if last == nil || a.Learned.After(last.Learned) {
			last = a
		}
	}
	return last
}

// HasAny reports whether anything is known of the server.
func (s *Server) HasAny() bool {
	s.readAgain()
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.answers) > 0
}

// Learn keeps what the server has said to clients that declare the same, in the place of what it said
// before, and writes the file if that has changed. It waits for the disk.
func (s *Server) Learn(declared string, a *Answers) {
	if a.size() <= maxBytes/2 && a.valid() && s.keep(declared, a) {
		s.write()
	}
}

// keep keeps answers in memory, and reports whether the file has to be written.
func (s *Server) keep(declared string, a *Answers) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.answers[declared]
	s.putLocked(declared, a)
	return before == nil || !before.Same(a) || time.Since(s.written) > rewriteAfter
}

// merge keeps what a file has and is not known here, or is newer.
func (s *Server) merge(all map[string]*Answers) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for declared, a := range all {
		if before := s.answers[declared]; before == nil || a.Learned.After(before.Learned) {
			s.putLocked(declared, a)
		}
	}
}

// putLocked keeps answers within the bounds.
func (s *Server) putLocked(declared string, a *Answers) {
	before := s.answers[declared]
	if s.answers == nil {
		s.answers = make(map[string]*Answers)
	}
	if before != nil {
		s.bytes -= before.size()
	}
	s.answers[declared] = a
	s.bytes += a.size()
	for len(s.answers) > maxAnswers || s.bytes > maxBytes {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(s.answers)), func(a, b string) int {
			return s.answers[a].Learned.Compare(s.answers[b].Learned)
		})
		s.bytes -= s.answers[oldest].size()
		delete(s.answers, oldest)
	}
}

func (s *Server) path() string { return filepath.Join(s.store.dir, s.name+".json") }

// forget forgets what the file had.
func (s *Server) forget() {
	s.seen = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers, s.bytes, s.written = nil, 0, time.Time{}
}

// readAgain reads the file if it has changed since it was last read or written.
func (s *Server) readAgain() {
	if s.store.dir == "" {
		return
	}
	s.disk.Lock()
	defer s.disk.Unlock()
	now, err := os.Lstat(s.path())
	if errors.Is(err, fs.ErrNotExist) && s.seen != nil { // somebody wants it to be forgotten
		s.forget()
	}
	if err != nil || s.seen != nil && os.SameFile(now, s.seen) && now.ModTime().Equal(s.seen.ModTime()) {
		return
	}
	s.seen = now // another program replaces the file, so what is read is this one or a newer one
	content, err := s.load()
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		s.store.log.Warn("what a server said before cannot be used", "file", s.path(), "err", err)
	default:
		s.merge(content.Answers)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.written = now.ModTime()
	}
}

func (s *Server) load() (content file, err error) {
	if info, err := os.Lstat(s.path()); err == nil && !info.Mode().IsRegular() { // to open a pipe would wait
		return content, errors.New("it is not a regular file")
	}
	f, err := os.Open(s.path())
	if err != nil {
		return content, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return content, err
	case !info.Mode().IsRegular():
		return content, errors.New("it is not a regular file")
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return content, errors.New("other users of this machine can read or change it: chmod 600")
	}
	data, err := io.ReadAll(io.LimitReader(f, 4*maxBytes))
	if err != nil {
		return content, err
	}
	if err := json.Unmarshal(data, &content); err != nil {
		return content, fmt.Errorf("it is damaged: %w", err)
	}
	switch {
	case content.Layout != layout:
		return content, fmt.Errorf("it has layout %d, and this version reads %d", content.Layout, layout)
	case content.Server != s.name:
		return content, errors.New("it is of another server")
	}
	for declared, a := range content.Answers {
		if a == nil || !a.valid() {
			return content, fmt.Errorf("it has no result of initialize for %.80q", declared)
		}
		if a.Learned.After(time.Now()) { // the clock was wrong: it is as old as can be
			a.Learned = time.Time{}
		}
	}
	return content, nil
}

// write writes what is known now to the file, whole or not at all, and drops the oldest of too many.
func (s *Server) write() {
	if s.store.dir == "" {
		return
	}
	err := os.MkdirAll(s.store.dir, 0o700)
	if err == nil {
		unlock := s.store.lock()
		err = s.rewrite()
		unlock()
	}
	if err != nil {
		s.store.log.Warn("what a server said cannot be kept", "file", s.path(), "err", err)
	}
}

// lockWait bounds the wait for another program that writes a file, which takes milliseconds.
const lockWait = 5 * time.Second

// lock keeps other programs from writing files, until the returned function is called. Where that is not
// possible, or another program holds the lock for long, it goes without: what that learns may be lost.
func (s *Store) lock() (unlock func()) {
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	lock := flock.New(filepath.Join(s.dir, ".lock"), flock.SetPermissions(0o600))
	_, _ = lock.TryLockContext(ctx, time.Millisecond)
	return func() { _ = lock.Close() }
}

// rewrite writes the file with what it has that is not known here.
func (s *Server) rewrite() error {
	s.disk.Lock()
	defer s.disk.Unlock()
	if content, err := s.load(); err == nil { // else it is replaced
		s.merge(content.Answers)
	}
	s.mu.Lock()
	content := file{layout, s.name, maps.Clone(s.answers)}
	s.written = time.Now()
	s.mu.Unlock()
	var data bytes.Buffer
	to := json.NewEncoder(&data)
	to.SetEscapeHTML(false)
	err := to.Encode(content)
	if err == nil {
		err = s.store.replace(s.path(), data.Bytes())
	}
	s.seen, _ = os.Lstat(s.path()) // nil if it could not be written
	return err
}

func (s *Store) replace(path string, data []byte) error {
	s.dropOldest(path)
	f, err := os.CreateTemp(s.dir, ".new-") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// dropOldest makes room for one file beside the others.
func (s *Store) dropOldest(path string) {
	if _, err := os.Stat(path); err == nil {
		return // it is among them
	}
	entries, _ := os.ReadDir(s.dir)
	var files []fs.FileInfo
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && strings.HasSuffix(entry.Name(), ".json") {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for len(files) >= maxFiles {
		_ = os.Remove(filepath.Join(s.dir, files[0].Name()))
		files = files[1:]
	}
}
