package discovery

import (
	"errors"
	"os"
	"path/filepath"
)

// WriteFile replaces the file at path in the state directory. The file is readable by its
// user alone. Others see the old file or the new one, never a part. A symbolic link is
// replaced, not followed.
func WriteFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*") // exclusively, with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
