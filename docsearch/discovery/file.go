package discovery

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// WriteFile replaces the file of that name in the state directory dir, which exists. The
// file is readable by its user alone. Others see the old file or the new one, never a
// part, also after the machine loses its power. A symbolic link of that name is replaced,
// not followed. It fails if name has a directory in it.
func WriteFile(dir, name string, data []byte) error {
	if name != filepath.Base(name) || name == "." || name == ".." {
		return fmt.Errorf("write %q in the state directory: it is no name of a file", name)
	}
	f, err := os.CreateTemp(dir, name+".new-*") // exclusively, with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(dir)
}
