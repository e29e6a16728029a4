// Package atomicfile writes files in one step: whoever reads one, also after a power cut, finds what it had or what it
// has, never a part.
//
//	Write             a file of this program: for its user alone, in the place of what has the name, also of a link
//	Create            the same, unless something has the name
//	Existing.Replace  a file of others: it keeps what makes it theirs
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Unfinished begins the names of files that are not whole yet. A program that is killed leaves them.
const Unfinished = ".new-"

// Write writes a file with mode 0600. The folder must be there.
func Write(path string, data []byte) error { return system.write(path, data) }

// Create is Write, but fails with [fs.ErrExist] if something has the name. It needs a file system with hard links.
func Create(path string, data []byte) error { return system.create(path, data) }

// disk is how files get to the disk. Tests observe it.
type disk struct {
	sync func(*os.File) error
}

var system = disk{(*os.File).Sync}

func (d disk) write(path string, data []byte) error {
	return d.put(path, data, nil, func(whole string) error { return os.Rename(whole, path) })
}

func (d disk) create(path string, data []byte) error {
	return d.put(path, data, nil, func(whole string) error { return os.Link(whole, path) })
}

// put writes a file beside path, with the owner and the mode of another one, unless that is nil. name gives it the name
// path once it is on the disk.
func (d disk) put(path string, data []byte, like fs.FileInfo, name func(whole string) error) error {
	dir := filepath.Dir(path)
	file, err := os.CreateTemp(dir, Unfinished+"*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // nothing is there after a rename
	_, err = file.Write(data)
	if like != nil {
		err = errors.Join(err, keepOwner(file, like), file.Chmod(like.Mode().Perm()))
	}
	if err := errors.Join(err, d.sync(file), file.Close()); err != nil {
		return err
	}
	if err := name(file.Name()); err != nil {
		return err
	}
	if folder, err := os.Open(dir); err == nil { // so that the name outlives a power cut, where the system can do that
		_ = d.sync(folder)
		_ = folder.Close()
	}
	return nil
}
