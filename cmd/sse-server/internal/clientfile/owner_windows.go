package clientfile

import (
	"io/fs"
	"os"
)

// keepOwner does nothing: the folder has the rights.
func keepOwner(*os.File, fs.FileInfo) error { return nil }
