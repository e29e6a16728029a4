package database

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	header      = 100 // bytes, of a SQLite file
	damagedMark = ".damaged"
)

// inspect returns why the file at path cannot be an index, or "". It reads no more
// than the header.
func inspect(path string) string {
	fi, err := os.Stat(path)
	if err != nil {
		return "" // there is none, or SQLite gives the error
	}
	if !fi.Mode().IsRegular() {
		return "it is not a regular file"
	}
	if _, err := os.Stat(path + damagedMark); err == nil {
		return "it was found to be damaged"
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	var h [header]byte
	if n, _ := f.ReadAt(h[:], 0); n == 0 {
		return ""
	} else if n < header || string(h[:16]) != "SQLite format 3\x00" {
		return "it is not a SQLite file"
	}
	if wal, err := os.Stat(path + "-wal"); err == nil && wal.Size() > 0 {
		return "" // it may have the rest
	}
	pageSize := int64(binary.BigEndian.Uint16(h[16:]))
	if pageSize == 1 {
		pageSize = 1 << 16
	}
	if want := pageSize * int64(binary.BigEndian.Uint32(h[28:])); fi.Size() < want {
		return fmt.Sprintf("it is cut off at %d bytes of %d", fi.Size(), want)
	}
	return ""
}

// MoveAside renames the file at path, and its log, and removes the mark.
func MoveAside(path string) error {
	to := path + ".corrupt-" + time.Now().UTC().Format("20060102T150405.000")
	if err := os.Rename(path, to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Rename(path+suffix, to+suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := os.Remove(path + damagedMark); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// MarkDamaged has the next Open find the file unusable.
func (d *Database) MarkDamaged() error { return os.WriteFile(d.path+damagedMark, nil, 0o600) }
