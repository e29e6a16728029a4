package clientfile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"github.com/mcp-sse/mcp-sse/internal/atomicfile"
	"github.com/mcp-sse/mcp-sse/internal/clients"
)

// Editor changes the files of clients. One program at a time does, and what was there stays in a directory of this
// user:
//
//	lock        held by whoever changes a file
//	ID.copy     the file as it was before the last change; ID is a hash of its path
//	ID.json     the entries that were changed, as they were and as they are since
type Editor struct {
	dir string
	// run is the time of the run of sse-server: what one run has changed goes back together.
	run string
	// looks is called before the file is looked at again; nil but in tests.
	looks func()
}

// NewEditor returns the Editor that keeps its files in a directory, which it makes. All that it changes is one run.
func NewEditor(dir string) *Editor {
	return &Editor{dir: dir, run: time.Now().UTC().Format("2006-01-02T15:04:05.000000000Z")}
}

const (
	lockTime = 10 * time.Second
	lockPoll = 10 * time.Millisecond
	// maxLooks bounds how often a change is made anew because somebody else has changed the file meanwhile.
	maxLooks = 20
)

var errBusy = errors.New("another program changes it all the time: close the client, and try again")

// record has what was done to a file.
type record struct {
	File    string             `json:"file"`
	Entries map[string]changed `json:"entries"`
}

// changed is an entry that was changed: the texts of it. Before is nil if there was none, and After is empty if there
// is none since. Run is the last one that has changed it; empty if Undo has found since that somebody else has, too.
type changed struct {
	Before *string `json:"before"`
	After  string  `json:"after"`
	Run    string  `json:"run"`
}

// last returns the entries that the last run has changed, among those with a name or all if that is empty; and the run.
func (r record) last(name string) (names []string, run string) {
	for of, one := range r.Entries {
		switch {
		case name != "" && of != name:
		case one.Run > run:
			names, run = []string{of}, one.Run
		case one.Run == run:
			names = append(names, of)
		}
	}
	slices.Sort(names)
	return names, run
}

// is reports whether an entry, which is there or not, is as the change has left it.
func (c changed) is(of form, text string, there bool) bool {
	if c.After == "" {
		return !there
	}
	return there && of.same(text, c.After)
}

// lock waits until no other program changes files of clients.
func (e *Editor) lock() (unlock func(), err error) {
	if err := os.MkdirAll(e.dir, 0o700); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockTime)
	defer cancel()
	lock := flock.New(filepath.Join(e.dir, "lock"), flock.SetPermissions(0o600))
	if locked, err := lock.TryLockContext(ctx, lockPoll); !locked {
		return nil, fmt.Errorf("another sse-server changes files of clients: %w", err)
	}
	return func() { _ = lock.Close() }, nil
}

// edit replaces what is in a file by what change makes of it. If somebody else changes the file meanwhile, change gets
// that. keep is told before the file is replaced. The caller has the lock.
func (e *Editor) edit(
	file string, change func(text []byte) ([]byte, error), keep func(before, after []byte) error,
) (unlinked bool, err error) {
	for range maxLooks {
		was, err := atomicfile.Read(file)
		if err != nil {
			return false, err
		}
		after, err := change(was.Text())
		if err != nil {
			return false, fmt.Errorf("%s: %w", was.Path, err)
		}
		after = was.WithItsLineEnds(after)
		if bytes.Equal(after, was.Text()) {
			return false, nil
		}
		if err := keep(was.Text(), after); err != nil {
			return false, err
		}
		if was.IsThere() {
			err = atomicfile.Write(e.path(file, ".copy"), was.Data)
		} else {
			err = os.MkdirAll(filepath.Dir(file), 0o755)
		}
		if err != nil {
			return false, err
		}
		if e.looks != nil {
			e.looks()
		}
		if err = was.Replace(after); !errors.Is(err, atomicfile.ErrChanged) {
			return was.Names > 1, err
		}
	}
	return false, fmt.Errorf("%s: %w", file, errBusy)
}

// path returns the path of what is kept of a file.
func (e *Editor) path(file, ending string) string {
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	whole, err := filepath.Abs(file)
	if err != nil {
		whole = file
	}
	sum := sha256.Sum256([]byte(whole))
	return filepath.Join(e.dir, hex.EncodeToString(sum[:8])+ending)
}

// read returns what was done to a file.
func (e *Editor) read(file string) (r record, err error) {
	r = record{File: file, Entries: map[string]changed{}}
	data, err := os.ReadFile(e.path(file, ".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	return r, err
}

func (e *Editor) write(file string, r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return atomicfile.Write(e.path(file, ".json"), data)
}

// note remembers the entries that differ in after. It keeps the entry of before the first change, unless somebody else
// has changed it since.
func (e *Editor) note(file string, of form, before, after []byte, names []string) error {
	r, err := e.read(file)
	if err != nil {
		return err
	}
	for _, name := range names {
		was, there, err := of.entry(before, name)
		if err != nil {
			return err
		}
		is, isThere, err := of.entry(after, name)
		if err != nil {
			return err
		}
		if there == isThere && was == is {
			continue
		}
		one := changed{After: is, Run: e.run}
		if earlier, known := r.Entries[name]; known && earlier.is(of, was, there) {
			one.Before = earlier.Before
		} else if there {
			one.Before = &was
		}
		r.Entries[name] = one
	}
	return e.write(file, r)
}

// Exchange takes entries out of a file, and adds one in their place. Undo brings them back. It reports whether the file
// had more names, as Write does.
func (e *Editor) Exchange(c clients.Client, file string, names []string, s clients.Server) (unlinked bool, err error) {
	unlock, err := e.lock()
	if err != nil {
		return false, err
	}
	defer unlock()
	of := formOf(c.Entry)
	return e.edit(file, func(text []byte) ([]byte, error) {
		text = bytes.Clone(text)
		for _, name := range names {
			if text, err = of.put(text, name, nil); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		text, _, err := of.add(text, []clients.Server{s}, false)
		return text, err
	}, func(before, after []byte) error {
		return e.note(file, of, before, after, append(slices.Clone(names), s.Name))
	})
}

// RunOf reports whether there is something that Undo could restore in a file, of an entry with a name, or of all if
// that is empty, and returns the run that Undo would restore: a later one is greater. It is empty for entries that Undo
// has left as they are.
func (e *Editor) RunOf(file, name string) (run string, ok bool) {
	r, err := e.read(file)
	if err != nil {
		return "", false
	}
	names, run := r.last(name)
	return run, len(names) > 0
}

// Undone says what Undo has done.
type Undone struct {
	// Restored are the names of entries that are as they were before, Removed of those that were not there before, and
	// Changed of those that somebody has changed since, which stay.
	Restored, Removed, Changed []string
}

// Undo restores the entries that the last run has changed in a file: that with a name, or all if that is empty. The
// next Undo restores those of the run before. An entry comes back as it was before the first run that has changed it;
// one that somebody else has changed since stays as it is, and its turn comes after those of all runs.
func (e *Editor) Undo(c clients.Client, file, name string) (u Undone, err error) {
	unlock, err := e.lock()
	if err != nil {
		return u, err
	}
	defer unlock()
	r, err := e.read(file)
	if err != nil {
		return u, err
	}
	names, _ := r.last(name)
	if len(names) == 0 {
		return u, fmt.Errorf("%s: sse-server has changed nothing in it that could be restored", file)
	}
	of := formOf(c.Entry)
	var gone []string // that somebody has removed already
	_, err = e.edit(file, func(text []byte) ([]byte, error) {
		u, gone = Undone{}, nil
		for _, name := range names {
			is, there, err := of.entry(text, name)
			if err != nil {
				return nil, err
			}
			one := r.Entries[name]
			switch isBefore := !there && one.Before == nil || there && one.Before != nil && of.same(is, *one.Before); {
			case isBefore:
			case !one.is(of, is, there):
				u.Changed = append(u.Changed, name)
				continue
			default:
				if text, err = of.put(text, name, one.Before); err != nil {
					return nil, err
				}
			}
			switch {
			case one.Before != nil:
				u.Restored = append(u.Restored, name)
			case there:
				u.Removed = append(u.Removed, name)
			default:
				gone = append(gone, name)
			}
		}
		return text, nil
	}, func([]byte, []byte) error { return nil })
	if err != nil {
		return Undone{}, err
	}
	for _, name := range slices.Concat(u.Restored, u.Removed, gone) {
		delete(r.Entries, name)
	}
	for _, name := range u.Changed {
		one := r.Entries[name]
		one.Run = ""
		r.Entries[name] = one
	}
	return u, e.write(file, r)
}
