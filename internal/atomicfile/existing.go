package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// ErrChanged says that somebody has written a file since it was read.
var ErrChanged = errors.New("it has changed meanwhile")

// ByteOrderMark is what editors on Windows put before UTF-8.
var ByteOrderMark = []byte("\ufeff")

// Existing is a file of others as it was when it was read.
type Existing struct {
	// Path is where it is, behind links.
	Path string
	// Data is all that it has; nil if it is not there.
	Data []byte
	// Names is how many names lead to it, which are hard links; 0 if it is not there. Replace leaves to the others
	// what they had, as they may be those of a backup.
	Names uint64

	called string      // the path as the caller has it
	info   fs.FileInfo // nil: it is not there
}

// Read reads a file that may be missing. It fails for what Replace must not replace, or cannot.
func Read(path string) (*Existing, error) {
	e := &Existing{Path: path, called: path}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return nil, fmt.Errorf("%s is a link to a file that is not there: make that, or remove the link", path)
		}
		return e, nil
	}
	if err != nil {
		return nil, err
	}
	e.Path = real
	e.info, err = os.Stat(real)
	switch {
	case err != nil:
		return nil, err
	case !e.info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file: name one that is", path)
	case e.info.Mode().Perm()&0o200 == 0:
		return nil, fmt.Errorf("%s is read-only: let its owner write it first", path)
	}
	opened, err := os.OpenFile(real, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	e.Names, err = namesOf(opened)
	if err := errors.Join(err, opened.Close()); err != nil {
		return nil, err
	}
	e.Data, err = os.ReadFile(real)
	return e, err
}

// IsThere reports whether there was a file.
func (e *Existing) IsThere() bool { return e.info != nil }

// Text returns what the file has, without a byte order mark.
func (e *Existing) Text() []byte { return bytes.TrimPrefix(e.Data, ByteOrderMark) }

// WithItsLineEnds returns a text with the line ends of the file.
func (e *Existing) WithItsLineEnds(text []byte) []byte {
	windows, unix := []byte("\r\n"), []byte("\n")
	if !bytes.Contains(e.Data, windows) || bytes.Count(e.Data, unix) != bytes.Count(e.Data, windows) {
		return text
	}
	return bytes.ReplaceAll(bytes.ReplaceAll(text, windows, unix), unix, windows)
}

// Replace writes another text. The file keeps its owner, its mode, its byte order mark and the links that lead to it; a
// new one is for this user alone. It fails with ErrChanged if the file is not as it was read.
func (e *Existing) Replace(text []byte) error { return system.replace(e, text) }

func (d disk) replace(e *Existing, text []byte) error {
	if bytes.HasPrefix(e.Data, ByteOrderMark) {
		text = slices.Concat(ByteOrderMark, text)
	}
	return d.put(e.Path, text, e.info, func(whole string) error {
		now, err := Read(e.called)
		switch {
		case err != nil:
			return err
		case now.IsThere() != e.IsThere() || !bytes.Equal(now.Data, e.Data):
			return ErrChanged
		}
		return os.Rename(whole, e.Path)
	})
}
