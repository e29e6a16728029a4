package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// Probes of clients hold the lock for some microseconds, so that Acquire tries some
// more times before it believes that a daemon has it.
const (
	acquireTime  = 500 * time.Millisecond
	acquirePause = 5 * time.Millisecond
)

// Lock is the lock of a daemon on its state directory. The system releases it when the
// process ends.
type Lock struct {
	dir   string
	file  os.FileInfo // of the lock file, when it was locked
	flock *flock.Flock
}

// ErrLost says that the lock file, or the whole state directory, was removed.
var ErrLost = errors.New("the state directory was removed")

// Check repairs the record r if it is not in the state directory any more, and returns
// an error that wraps ErrLost if the lock file is not: another daemon may have made, and
// locked, its own.
func (l *Lock) Check(r Record) error {
	now, err := os.Stat(filepath.Join(l.dir, lockFile))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(l.file, now) {
		return fmt.Errorf("check lock: %w: %s", ErrLost, l.dir)
	}
	if err != nil {
		return fmt.Errorf("check lock: %w", err)
	}
	if have, err := Read(l.dir); err == nil && have.Same(r) {
		return nil
	}
	return l.Publish(r)
}

// Acquire takes the lock of the state directory dir, which it creates if needed, and
// removes the record of a daemon that died. It returns an error that wraps ErrHeld if a
// daemon has the lock, and decides that within half a second.
func Acquire(dir string) (*Lock, error) {
	if err := MakeDir(dir); err != nil {
		return nil, err
	}
	f := flock.New(filepath.Join(dir, lockFile), flock.SetFlag(os.O_CREATE|os.O_RDWR|NoFollow))
	ctx, cancel := context.WithTimeout(context.Background(), acquireTime)
	defer cancel()
	if ok, err := f.TryLockContext(ctx, acquirePause); !ok && ctx.Err() != nil {
		return nil, fmt.Errorf("lock state directory %s: %w", dir, ErrHeld)
	} else if err != nil {
		return nil, fmt.Errorf("lock state directory: %w", err)
	}
	file, err := os.Stat(filepath.Join(dir, lockFile))
	if err == nil {
		err = removeRecord(dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock state directory: %w", err), f.Unlock())
	}
	return &Lock{dir: dir, file: file, flock: f}, nil
}

// Publish writes the record for clients to read. They see the old record or the new
// one, never a part. It fails after Release.
func (l *Lock) Publish(r Record) error {
	if !l.flock.Locked() {
		return errors.New("publish record: the lock is released")
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("publish record: %w", err)
	}
	if err := WriteFile(filepath.Join(l.dir, recordFile), append(data, '\n')); err != nil {
		return fmt.Errorf("publish record: %w", err)
	}
	return nil
}

// Release removes the record and gives up the lock. Further calls do nothing.
func (l *Lock) Release() error {
	if !l.flock.Locked() {
		return nil
	}
	return errors.Join(removeRecord(l.dir), l.flock.Unlock())
}

// Held reports whether a daemon holds the lock of dir. It creates nothing. It returns
// an error that wraps ErrOwner if the directory belongs to another user.
func Held(dir string) (bool, error) {
	if _, err := statOwned(dir); err != nil {
		return false, absent(err)
	}
	f := flock.New(filepath.Join(dir, lockFile), flock.SetFlag(os.O_RDONLY|NoFollow))
	free, err := f.TryRLock()
	if err != nil {
		return false, absent(err)
	}
	if err := f.Close(); err != nil {
		return false, fmt.Errorf("look at lock: %w", err)
	}
	return !free, nil
}

// absent returns nil if err says that a file is not there: then nobody has locked it.
func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func removeRecord(dir string) error {
	if err := absent(os.Remove(filepath.Join(dir, recordFile))); err != nil {
		return fmt.Errorf("remove record: %w", err)
	}
	return nil
}
