//go:build !unix

package private

import (
	"io/fs"
	"os"
)

// The profile of a user, and what is below it, is closed to others by an access list, which Go does not read: the user,
// the system and administrators are in it.

const (
	groupAndOthers fs.FileMode = 0o077
	writingOthers  fs.FileMode = 0o002
)

func isOpenTo(fs.FileInfo, fs.FileMode) bool { return false }

func ownerText(fs.FileInfo) string { return "" }

// IsOwn reports whether a file belongs to this user.
func IsOwn(fs.FileInfo) bool { return true }

// IsTrusted reports whether a file belongs to this user or to the system.
func IsTrusted(fs.FileInfo) bool { return true }

// CheckOwned returns an error unless there is a folder.
func CheckOwned(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	return check(dir, info, IsOwn)
}
