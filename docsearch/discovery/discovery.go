// Package discovery lets a daemon and its clients find each other through a state
// directory, which belongs to one user.
//
// The directory has two files for this. The daemon holds a lock on daemon.lock for as
// long as it lives; the system releases it however the process ends. daemon.json is the
// [Record], which says where the daemon listens. A record is only worth something while
// the lock is held: a daemon that is killed leaves its record behind, and the next one
// removes it right after it gets the lock.
package discovery

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const (
	lockFile   = "daemon.lock"
	recordFile = "daemon.json"
)

// ErrHeld says that another daemon holds the lock of the state directory.
var ErrHeld = errors.New("another daemon runs in this state directory")

// ErrNoRecord says that no daemon has published where it listens.
var ErrNoRecord = errors.New("no daemon has published its address")

// ErrOwner says that the state directory belongs to another user. Nothing in it is
// trusted.
var ErrOwner = errors.New("the state directory belongs to another user")

// ErrShared says that others can write to the state directory, so that any file in it
// may be theirs.
var ErrShared = errors.New("others can write to the state directory, and it is not empty; " +
	"remove it if you do not know all that is in it, else run chmod 700 on it")

// StateDir returns the state directory of the user: docsearch in $XDG_STATE_HOME, or in
// ~/.local/state if that is unset or not absolute, as the XDG Base Directory
// Specification has it. It fails if $HOME is needed and unset.
func StateDir(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "docsearch"), nil
	}
	home := getenv("HOME")
	if home == "" {
		home = getenv("USERPROFILE")
	}
	if !filepath.IsAbs(home) {
		return "", errors.New("find the state directory: set XDG_STATE_HOME or HOME to an absolute path")
	}
	return filepath.Join(home, ".local", "state", "docsearch"), nil
}

// MakeDir creates the state directory, which only its user can enter. If it exists, it
// fails with ErrOwner if it belongs to another user, and with ErrShared if others can write
// to it and there is something in it; otherwise it closes it to all others.
func MakeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make state directory: %w", err)
	}
	info, err := statOwned(dir)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("close state directory to other users: %w", err)
	}
	if err := checkShared(dir, info); err != nil { // somebody was faster
		return errors.Join(err, os.Chmod(dir, info.Mode().Perm()))
	}
	return nil
}

// statOwned returns what dir is, if it is a directory of this process's user, and nobody
// else can have put something into it. It may be a symbolic link of this user.
func statOwned(dir string) (os.FileInfo, error) {
	link, err := os.Lstat(dir)
	if err != nil {
		return nil, fmt.Errorf("look at state directory: %w", err)
	}
	if !owned(link) {
		return nil, fmt.Errorf("%s: %w", dir, ErrOwner)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("look at state directory: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("state directory %s is not a directory", dir)
	}
	if !owned(info) {
		return nil, fmt.Errorf("%s: %w", dir, ErrOwner)
	}
	return info, checkShared(dir, info)
}

// checkShared fails if others can write to dir, as info says, and something is in it.
func checkShared(dir string, info os.FileInfo) error {
	if !othersWrite(info) {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("look into state directory: %w", err)
	}
	defer func() { _ = d.Close() }() // only read
	switch _, err := d.Readdirnames(1); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return fmt.Errorf("look into state directory: %w", err)
	}
	return fmt.Errorf("%s: %w", dir, ErrShared)
}
