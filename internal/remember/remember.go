// Package remember keeps what MCP servers answered to initialize and to their lists, so that a client
// can have both before its server has started.
//
//	Store ── remember.go  one for a program: a directory of files, or memory alone
//	  └─ Server           a server in one place: what it said, by the Client that asked
//	       ├─ record      a file: what the same server said in all places
//	       │    └─ Answers ── answers.go   the result of initialize, and the pages of the lists
//	       └─ Nearest ── nearest.go   what it said to another kind of client, or in another place
//
// A file has what one server said, and is named by what the server is: see [Identity]. So a server with
// another command, program or variable has another file, and the old one is dropped when there are many.
// Programs share the directory: what another one has learned is read when it is needed, and kept when the
// file is written. A disk that hangs is in nobody's way: see job.
package remember

import (
	"bytes"
	"cmp"
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
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"github.com/mcp-sse/mcp-sse/internal/atomicfile"
	"github.com/mcp-sse/mcp-sse/internal/private"
	"github.com/mcp-sse/mcp-sse/internal/rawjson"
)

const (
	// layout is the version of the files. Files of another one are ignored, and written anew.
	layout = 5
	// MaxAge is the age of answers from which nobody is told of them.
	MaxAge = 30 * 24 * time.Hour
	// maxAnswers bounds what is kept of one server for clients that declare different things, in all places,
	// and maxBytes all of it together.
	maxAnswers = 64
	maxBytes   = 8 << 20
	// maxFiles bounds the files in the directory.
	maxFiles = 256
	// rewriteAfter is the age of what a file says after which it is written again although nothing has
	// changed: so the time in it is never older than this when the server has answered lately.
	rewriteAfter = time.Hour
	// readWait bounds how long anybody waits for the disk before it goes on with what is known, and firstReadWait does
	// until the disk has answered once: to go on with nothing costs the boot of the server. writeWait is how long one
	// who has learned something waits until it is written: longer than for another program's lock.
	readWait      = 250 * time.Millisecond
	firstReadWait = 3 * time.Second
	writeWait     = lockWait + time.Second
)

// Identity is what a server is, and where it runs. Both texts stay the same as long as the server should say
// the same of itself, as far as that can be known.
type Identity struct {
	// Server has all that makes it this server and no other one: its command, its program, and the variables
	// that were given to it.
	Server string
	// Place is where it runs: its directory, and what is around it.
	Place string
	// AnyFolder is the place in which it runs in an empty folder, as any other place may start it: what it says
	// there may be told here. Empty: nowhere.
	AnyFolder string
	// Command is what of the server is the same whatever variables it has: two of one command may need the same port or
	// file. Empty: Server is.
	Command string
}

// String has all of it.
func (i Identity) String() string { return i.Server + "\n" + i.Place }

// Store keeps what servers said. It is safe for concurrent use.
type Store struct {
	dir string // empty: nothing is written
	log *slog.Logger

	mu      sync.Mutex // guards records
	records map[string]*record
}

// Open returns the Store whose files are in a directory, which it makes when it first writes. With an
// empty name it only keeps things in memory. Files that it cannot read or use are as if they were not
// there, and a line in the log says so.
func Open(dir string, log *slog.Logger) *Store {
	return &Store{dir: dir, log: log, records: make(map[string]*record)}
}

// Server returns what is known of a server.
func (s *Store) Server(identity Identity) *Server {
	name := hashOf(identity.Server)
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.records[name]
	if r == nil {
		if len(s.records) >= maxFiles { // those in use go on, and share the files
			clear(s.records)
		}
		r = &record{store: s, name: name}
		r.reads.does, r.writes.does = r.readAgain, r.write
		s.records[name] = r
	}
	of := &Server{record: r, place: hashOf(identity.Place)}
	if identity.AnyFolder != "" {
		of.anyFolder = anyFolder + hashOf(identity.AnyFolder)
	}
	return of
}

// anyFolder begins the names of the places of servers in an empty folder.
const anyFolder = "any-folder-"

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// Server is what is known of one server in one place. It is safe for concurrent use.
type Server struct {
	*record
	place     string
	anyFolder string // the place of the same server in an empty folder; empty: none
	folder    string // the name of the empty folder in which it runs now; empty: it runs in none
}

// InAnyFolder returns what the server says in an empty folder; nil if that may not be told here, or where nothing
// is kept in files: no other place would know of it.
func (s *Server) InAnyFolder() *Server {
	if s.anyFolder == "" || s.store.dir == "" {
		return nil
	}
	return &Server{record: s.record, place: s.anyFolder}
}

// record is what is known of one server in all places.
type record struct {
	store *Store
	name  string // of the file, without its ending

	reads, writes job
	isRead        atomic.Bool // the disk has said what is in the file, or that there is none

	disk sync.Mutex  // held while the file is read or written, and guards seen; taken before mu
	seen fs.FileInfo // the file as it was last read or written; nil: there was none

	mu      sync.Mutex // guards what follows; never held while the disk is waited for
	answers map[key]entry
	bytes   int
	written time.Time            // when the file was last written
	tries   map[string]time.Time // when the server was last started in an empty folder, by the place
	// whyNotKept is why the file was not written last; empty: it was.
	whyNotKept string
}

// key is who was told something, and where.
type key struct {
	place  string
	client clientKey
}

// isInEmptyFolder reports whether the server ran in an empty folder.
func (k key) isInEmptyFolder() bool { return strings.HasPrefix(k.place, anyFolder) }

// sizeOf returns about how many bytes answers take with their key, which has what a client declared.
func sizeOf(k key, a *Answers) int {
	c := k.client
	return len(k.place) + len(c.version) + len(c.capabilities) + len(c.who) + len(c.info) + a.size()
}

// entry is what a server said to such a client. It is not changed.
type entry struct {
	open    bool // the params of the client had no text that somebody could have chosen
	general bool // its partial may be told to another kind of client: it is open, too
	*Answers
}

// file is the content of a file. For a server with one tool, which the gateway has asked in one place, it is
//
//	{"layout":5,"server":"ff24337324cf8748708ece7f785fd548","answers":[
//	  {"place":"9e16cc16222a7664b239299e356fddb5","version":"2025-11-25","capabilities":"{}","who":"gateway",
//	   "open":true,"said":{
//	     "initialize":"{\"protocolVersion\": …}",
//	     "pages":{"tools/list":{"":"{\"tools\": […]}"}},
//	     "learned":"2026-11-30T00:18:14.801024416Z"}}]}
//
// in one line. The server and the place are hashes of what they are. A page is below the cursor that asks for it, the
// first one below the empty text, and has the result as the server wrote it.
type file struct {
	Layout  int     `json:"layout"`
	Server  string  `json:"server"`
	Answers []saved `json:"answers"`
	// Tries says when the server was last started in an empty folder, by the place.
	Tries map[string]time.Time `json:"tries,omitempty"`
}

// saved is an entry with its key.
type saved struct {
	Place        string   `json:"place"`
	Version      string   `json:"version"`
	Capabilities string   `json:"capabilities"`
	Who          string   `json:"who"`
	Info         string   `json:"info,omitempty"`
	Open         bool     `json:"open,omitempty"`
	General      bool     `json:"general,omitempty"`
	Said         *Answers `json:"said"`
}

func (s saved) key() key { return key{s.Place, clientKey{s.Version, s.Capabilities, s.Who, s.Info}} }

// refresh looks whether the file has changed: another program may have learned more, or somebody has deleted
// it. If the disk does not say so soon, what is known counts.
func (r *record) refresh() {
	switch {
	case r.store.dir == "":
	case r.isRead.Load():
		r.reads.do(readWait)
	default:
		r.reads.do(firstReadWait)
	}
}

// Answers returns what the server said here last to a client that declares the same and calls itself the same, or else
// as the gateway does; nil if that is unknown. So no client is told what a server says to the texts of another one.
func (s *Server) Answers(c Client) *Answers {
	s.refresh()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, who := range c.listensTo() {
		for _, info := range []string{c.info, ""} {
			e := s.answers[key{s.place, clientKey{c.version, c.capabilities, who, info}}]
			if e.Answers != nil && e.isFresh() {
				return e.Answers
			}
		}
	}
	return nil
}

// AnswersAt returns what the server said here last, with a protocol version, to params that have no text of a client's
// own; nil if that is unknown.
func (s *Server) AnswersAt(version string, c Client) *Answers {
	return s.last(func(k key, e entry) bool {
		return k.place == s.place && e.open && e.isAt(k, version) && slices.Contains(c.listensTo(), k.client.who)
	})
}

// isAt reports whether a protocol version is the one that was asked for, or the one that was answered.
func (e entry) isAt(k key, version string) bool {
	answered, _ := rawjson.MemberText(json.RawMessage(e.Initialize), "protocolVersion")
	return k.client.version == version || answered == version
}

// Last returns what the server said last to one of those, to params that have no text of a client's own, in a place
// from which it may be told here; nil if nothing is known.
func (s *Server) Last(who ...string) *Answers {
	return s.toldHere(func(k key, e entry) bool { return e.open && slices.Contains(who, k.client.who) })
}

// HasAny reports whether anything is known of the server that may be told here.
func (s *Server) HasAny() bool {
	return s.toldHere(func(key, entry) bool { return true }) != nil
}

// IsKnown reports whether anything is remembered of the server in any place.
func (s *Server) IsKnown() bool { return s.last(func(key, entry) bool { return true }) != nil }

// toldHere returns the newest of the answers that are meant: of this place, else of an empty folder.
func (s *Server) toldHere(meant func(key, entry) bool) *Answers {
	if here := s.last(func(k key, e entry) bool { return k.place == s.place && meant(k, e) }); here != nil {
		return here
	}
	return s.last(func(k key, e entry) bool { return s.anyFolder != "" && k.place == s.anyFolder && meant(k, e) })
}

// last returns the newest of the answers that are meant.
func (s *Server) last(meant func(key, entry) bool) (last *Answers) {
	s.refresh()
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, e := range s.answers {
		if e.isFresh() && (last == nil || e.Learned.After(last.Learned)) && meant(k, e) {
			last = e.Answers
		}
	}
	return last
}

func (e entry) isFresh() bool { return time.Since(e.Learned) < MaxAge }

// Learn keeps what the server has said to a client, in the place of what it said before, and writes the file if
// that has changed. It waits for the disk, but not for long.
// It reports whether it was new.
func (s *Server) Learn(c Client, a *Answers) (isNew bool) {
	k := key{s.place, c.key()}
	if sizeOf(k, a) > maxBytes/2 || !a.valid() {
		return false
	}
	e := entry{open: c.saysNothing, general: c.saysNothing && isGeneral(s.folder, a), Answers: a}
	isNew, isOld := s.keep(k, e)
	if (isNew || isOld) && s.store.dir != "" {
		s.writes.do(writeWait)
	}
	return isNew
}

// keep keeps answers in memory, and reports whether they are new, and whether the file is old.
func (r *record) keep(k key, e entry) (isNew, isOld bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, had := r.answers[k]
	r.putLocked(k, e)
	isNew = !had || !before.Same(e.Answers) || before.open != e.open || before.general != e.general
	return isNew, time.Since(r.written) > rewriteAfter || had && e.Learned.Sub(before.Learned) > rewriteAfter
}

// merge keeps what a file has and is not known here, or is newer.
func (r *record) merge(content file) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for place, at := range content.Tries {
		r.noteTryLocked(place, at)
	}
	for _, one := range content.Answers {
		if before, had := r.answers[one.key()]; !had || one.Said.Learned.After(before.Learned) {
			r.putLocked(one.key(), entry{one.Open, one.General, one.Said})
		}
	}
}

// putLocked keeps answers within the bounds. Answers of empty folders go last, but take no more than half: all
// folders need them, and the server is not asked again soon. Within each of the two kinds, the client and place with
// the most answers give way first: so clients that vary what they declare push out their own answers.
func (r *record) putLocked(k key, e entry) {
	if r.answers == nil {
		r.answers = make(map[key]entry)
	}
	if before, had := r.answers[k]; had {
		r.bytes -= sizeOf(k, before.Answers)
	}
	r.answers[k] = e
	r.bytes += sizeOf(k, e.Answers)
	for len(r.answers) > maxAnswers || r.bytes > maxBytes {
		r.dropOneLocked()
	}
}

func (r *record) dropOneLocked() {
	type group struct{ place, who string }
	sizes := make(map[group]int)
	inEmpty, bytesInEmpty := 0, 0
	for k, e := range r.answers {
		sizes[group{k.place, k.client.who}]++
		if k.isInEmptyFolder() {
			inEmpty++
			bytesInEmpty += sizeOf(k, e.Answers)
		}
	}
	fromEmpty := inEmpty > maxAnswers/2 || bytesInEmpty > maxBytes/2
	var out key
	first := true
	for k, e := range r.answers {
		if k.isInEmptyFolder() != fromEmpty {
			continue
		}
		more := cmp.Compare(sizes[group{k.place, k.client.who}], sizes[group{out.place, out.client.who}])
		if first || more > 0 || more == 0 && e.Learned.Before(r.answers[out].Learned) {
			out, first = k, false
		}
	}
	r.bytes -= sizeOf(out, r.answers[out].Answers)
	delete(r.answers, out)
}

func (r *record) path() string { return filepath.Join(r.store.dir, r.name+".json") }

// forget forgets what the file had.
func (r *record) forget() {
	r.seen = nil
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers, r.bytes, r.written, r.tries = nil, 0, time.Time{}, nil
}

// readAgain reads the file if it has changed since it was last read or written.
func (r *record) readAgain() {
	defer r.isRead.Store(true)
	r.disk.Lock()
	defer r.disk.Unlock()
	now, err := os.Lstat(r.path())
	if errors.Is(err, fs.ErrNotExist) && r.seen != nil { // somebody wants it to be forgotten
		r.forget()
	}
	if err != nil || r.seen != nil && os.SameFile(now, r.seen) &&
		now.ModTime().Equal(r.seen.ModTime()) && now.Size() == r.seen.Size() {
		return
	}
	r.seen = now // another program replaces the file, so what is read is this one or a newer one
	content, err := r.load()
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		r.store.log.Warn("what a server said before cannot be used", "file", r.path(), "err", err)
	default:
		r.merge(content)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.written = now.ModTime()
	}
}

func (s *record) load() (content file, err error) {
	if err := private.CheckFolder(s.store.dir); err != nil {
		return content, err
	}
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
	case !private.IsOwn(info):
		return content, errors.New("it belongs to another user: delete it, or chown it to the user of this program")
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
	for _, one := range content.Answers {
		if one.Said == nil || !one.Said.valid() {
			return content, fmt.Errorf("it has no result of initialize for %.80q", one.Capabilities)
		}
		if one.Said.Learned.After(time.Now()) { // the clock was wrong, or is: it is used, and asked again
			one.Said.Learned = time.Now().Add(-MaxAge / 2)
		}
	}
	maps.DeleteFunc(content.Tries, func(_ string, at time.Time) bool {
		return at.After(time.Now()) || time.Since(at) > MaxAge
	})
	return content, nil
}

// write writes what is known now to the file, whole or not at all, and drops the oldest of too many.
func (s *record) write() {
	_, err := ownDir(s.store.dir)
	if err == nil {
		var unlock func()
		if unlock, err = s.store.lock(); err == nil {
			err = s.rewrite()
			unlock()
		}
	}
	s.warnOnce(err)
}

// warnOnce logs why the file cannot be written, once as long as that stays so.
func (s *record) warnOnce(err error) {
	why := ""
	if err != nil {
		why = err.Error()
	}
	s.mu.Lock()
	before := s.whyNotKept
	s.whyNotKept = why
	s.mu.Unlock()
	if why != "" && why != before {
		s.store.log.Warn("what a server said cannot be kept", "file", s.path(), "err", err)
	}
}

// lockWait bounds the wait for another program that writes a file, which takes milliseconds.
const lockWait = 5 * time.Second

// lock keeps other programs from writing files, until the returned function is called. Where the file system has
// no locks, it goes without: what another program learns meanwhile may be lost. It fails if another program holds
// the lock for long.
func (s *Store) lock() (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	lock := flock.New(filepath.Join(s.dir, ".lock"), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, time.Millisecond); ctx.Err() != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("another program holds %s: %w", lock.Path(), err)
	}
	return func() { _ = lock.Close() }, nil
}

// rewrite writes the file with what it has that is not known here.
func (s *record) rewrite() error {
	s.disk.Lock()
	defer s.disk.Unlock()
	if content, err := s.load(); err == nil { // else it is replaced
		s.merge(content)
	}
	s.mu.Lock()
	content := file{Layout: layout, Server: s.name, Tries: maps.Clone(s.tries)}
	for k, e := range s.answers {
		content.Answers = append(content.Answers, saved{
			k.place, k.client.version, k.client.capabilities, k.client.who, k.client.info,
			e.open, e.general, e.Answers,
		})
	}
	s.written = time.Now()
	s.mu.Unlock()
	var data bytes.Buffer
	to := json.NewEncoder(&data)
	to.SetEscapeHTML(false)
	slices.SortFunc(content.Answers, func(a, b saved) int { return a.Said.Learned.Compare(b.Said.Learned) })
	err := to.Encode(content)
	if err == nil {
		s.store.dropOldest(s.path())
		s.store.dropLeftovers()
		err = atomicfile.Write(s.path(), data.Bytes())
	}
	s.seen, _ = os.Lstat(s.path()) // nil if it could not be written
	if err != nil {
		s.mu.Lock()
		s.written = time.Time{} // the next answers try again
		s.mu.Unlock()
	}
	return err
}

// isFile matches the names of the files. Anything else in their folder is somebody else's.
var isFile = regexp.MustCompile(`^[0-9a-f]{32}\.json$`)

// dropOldest makes room for one file beside the others, and drops those that nobody is told of any more.
func (s *Store) dropOldest(path string) {
	if _, err := os.Stat(path); err == nil {
		return // it is among them
	}
	entries, _ := os.ReadDir(s.dir)
	var files []fs.FileInfo
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && isFile.MatchString(entry.Name()) {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for len(files) >= maxFiles || len(files) > 0 && time.Since(files[0].ModTime()) > MaxAge {
		_ = os.Remove(filepath.Join(s.dir, files[0].Name()))
		files = files[1:]
	}
}
