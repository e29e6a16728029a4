package remember

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/atomicfile"
	"github.com/mcp-sse/mcp-sse/internal/private"
)

// folderName begins the names of the folders that EmptyFolder makes: no text has its letters by chance, so a server
// that lists where it ran before names one, too.
const folderName = ".empty-qzx-"

// newWord returns a word that no text has by chance. It has letters alone, which servers keep when they make a name of
// it.
func newWord() string {
	const letters = "bcdfghjklmnpqrstvwxz"
	word := make([]byte, 16)
	for i := range word {
		word[i] = letters[rand.N(len(letters))]
	}
	return string(word)
}

// InFolder returns what the server says in this folder of EmptyFolder. Answers that name the folder are told in no
// other one.
func (s *Server) InFolder(dir string) *Server {
	there := *s
	there.folder = filepath.Base(dir)
	return &there
}

// tryAgain is how long a server is left alone that has shown nothing in an empty folder, and maxTries bounds how many
// places one server is tried from within that time.
const (
	tryAgain = 24 * time.Hour
	maxTries = 8
)

// WantsEmptyFolder reports whether a server that is known is not known in an empty folder, or since longer ago than an
// age, and if a try has shown nothing, that is longer ago than tryAgain. It waits for the disk, but not for long.
func (s *Server) WantsEmptyFolder(age time.Duration) bool {
	if !s.IsKnown() { // somebody may have deleted what was known
		return false
	}
	last := s.Last(Own)
	s.mu.Lock()
	defer s.mu.Unlock()
	tried := s.lastTryLocked(s.place)
	if last != nil && !tried.After(last.Learned) {
		return time.Since(last.Learned) >= age
	}
	return time.Since(tried) >= tryAgain
}

// lastTryLocked returns when the server was last tried in an empty folder, as a place has it. With many places it is
// when it was first tried of the last times.
func (r *record) lastTryLocked(place string) (at time.Time) {
	if at, ok := r.tries[place]; ok || len(r.tries) < maxTries {
		return at
	}
	return r.tries[r.oldestTryLocked()]
}

func (r *record) oldestTryLocked() (oldest string) {
	for place, at := range r.tries {
		if oldest == "" || at.Before(r.tries[oldest]) {
			oldest = place
		}
	}
	return oldest
}

func (r *record) noteTryLocked(place string, at time.Time) {
	if r.tries == nil {
		r.tries = make(map[string]time.Time)
	}
	if at.After(r.tries[place]) {
		r.tries[place] = at
	}
	for len(r.tries) > maxTries {
		delete(r.tries, r.oldestTryLocked())
	}
}

// noteTry notes that the server is about to start in an empty folder, whatever comes of it. It waits for the disk, and
// fails if no other program would know of the try.
func (s *Server) noteTry() error {
	s.mu.Lock()
	s.noteTryLocked(s.place, time.Now())
	s.mu.Unlock()
	s.writes.do(math.MaxInt64)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.whyNotKept != "" {
		return errors.New(s.whyNotKept)
	}
	return nil
}

// EmptyFolder is one for a server to start in, as Server.EmptyFolder makes it.
type EmptyFolder struct {
	Dir     string
	release func()
}

// EmptyFolder makes an empty folder below that of the files, for a server to start in. It fails if another user or a
// project can have files in a folder above it, where there are no locks, with ErrInUse while a client may use the
// command, and with ErrNotWanted unless WantsEmptyFolder.
//
// One server at a time is in such a folder, in all programs that share the locks, because ten servers at once would
// keep the machine busy. EmptyFolder waits for the others, and for the disk, as long as ctx lasts. Whether there is a
// client it looks after that, so one that has come meanwhile counts. The folder of a program that was killed is removed
// later.
func (s *Server) EmptyFolder(ctx context.Context, locks *Locks, age time.Duration) (*EmptyFolder, error) {
	type result struct {
		folder *EmptyFolder
		err    error
	}
	made := make(chan result)
	go func() { // ends with ctx, or with the disk
		folder, err := s.makeEmptyFolder(ctx, locks, age)
		select {
		case made <- result{folder, err}:
		case <-ctx.Done():
			if err == nil {
				folder.remove()
			}
		}
	}()
	select {
	case r := <-made:
		return r.folder, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *Server) makeEmptyFolder(ctx context.Context, locks *Locks, age time.Duration) (_ *EmptyFolder, err error) {
	defer func() {
		if err != nil && !errors.Is(err, ErrInUse) && !errors.Is(err, ErrNotWanted) && ctx.Err() == nil {
			_ = s.noteTry() // it would fail for the next one, too
		}
	}()
	under, err := ownDir(s.store.dir)
	if err == nil {
		err = private.CheckSecluded(under)
	}
	if err != nil {
		return nil, err
	}
	release, err := locks.turn(ctx)
	if err != nil {
		return nil, err
	}
	isUsed, err := locks.IsUsed()
	switch {
	case err != nil:
	case isUsed:
		err = ErrInUse
	case !s.WantsEmptyFolder(age): // another program has learned it meanwhile
		err = ErrNotWanted
	default:
		err = ctx.Err()
	}
	if err == nil {
		err = locks.noteTry()
	}
	if err == nil {
		err = s.noteTry()
	}
	dir := filepath.Join(under, folderName+newWord())
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		release()
		return nil, err
	}
	return &EmptyFolder{Dir: dir, release: release}, nil
}

// Remove removes the folder with all that the server has left there. Once ctx has ended it does not wait for the disk
// for long: what is left then is removed later.
func (f *EmptyFolder) Remove(ctx context.Context) {
	removed := make(chan struct{})
	go func() { // ends with the disk
		defer close(removed)
		f.remove()
	}()
	select {
	case <-removed:
		return
	case <-ctx.Done():
	}
	select {
	case <-removed:
	case <-time.After(readWait):
	}
}

func (f *EmptyFolder) remove() {
	removeAll(f.Dir)
	f.release()
}

// removeAll removes a folder, also with folders in it that nobody may write to, as package managers make them.
func removeAll(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700) // before it is read
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}

// dropLeftovers removes what programs have left that were killed while they wrote a file, or while a server ran
// in an empty folder. Both take much less than an hour.
func (s *Store) dropLeftovers() {
	entries, _ := os.ReadDir(s.dir)
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasPrefix(name, atomicfile.Unfinished) && !strings.HasPrefix(name, folderName) {
			continue
		}
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > time.Hour {
			removeAll(filepath.Join(s.dir, entry.Name()))
		}
	}
}
