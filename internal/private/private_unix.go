//go:build unix

package private

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Bits of modes.
const (
	groupAndOthers fs.FileMode = 0o077
	writingOthers  fs.FileMode = 0o002
)

func isOpenTo(info fs.FileInfo, whom fs.FileMode) bool { return info.Mode().Perm()&whom != 0 }

func ownerOf(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

// ownerText returns the number of the owner, as errors have it after a name.
func ownerText(info fs.FileInfo) string { return fmt.Sprintf(" (%d)", ownerOf(info)) }

// IsOwn reports whether a file belongs to this user.
func IsOwn(info fs.FileInfo) bool { return ownerOf(info) == os.Geteuid() }

// IsTrusted reports whether a file belongs to this user or to root, who can change any file.
func IsTrusted(info fs.FileInfo) bool {
	uid := ownerOf(info)
	if uid == os.Geteuid() || uid == 0 {
		return true
	}
	uidMap, _ := os.ReadFile("/proc/self/uid_map")
	return uid == unmapped && isUnmapped(uid, string(uidMap))
}

// unmapped is the owner of files of users that this user namespace does not have, as a sandbox sees those of
// root. (overflowuid of Linux.)
const unmapped = 65534

// isUnmapped reports whether no user has an id, by /proc/self/uid_map of Linux. Elsewhere each id is that of a user.
func isUnmapped(uid int, uidMap string) bool {
	for line := range strings.Lines(uidMap) {
		var first, outside, count int
		if n, _ := fmt.Sscan(line, &first, &outside, &count); n == 3 && uid >= first && uid-first < count {
			return false
		}
	}
	return uidMap != ""
}

// maxLinks bounds the links on the way to a folder.
const maxLinks = 64

// CheckOwned returns an error unless a folder belongs to this user, no other user can write to it, and none can put
// another one in its place. It follows links as the system does: each folder on the way counts, and who made each link.
func CheckOwned(dir string) error {
	path, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	at, rest, links := "/", elements(path), 0
	for len(rest) > 0 {
		if err := checkAbove(at, dir); err != nil {
			return err
		}
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(next)
		switch {
		case err != nil:
			return err
		case info.Mode().Type() != fs.ModeSymlink:
			at = next
			continue
		case !IsTrusted(info):
			return fmt.Errorf("the link %s belongs to another user (%d), who can replace %s", next, ownerOf(info), dir)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return err
		}
		if links++; links > maxLinks {
			return fmt.Errorf("too many links on the way to %s", dir)
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = slices.Concat(elements(target), rest)
	}
	info, err := os.Lstat(at)
	if err != nil {
		return err
	}
	return check(dir, info, IsOwn)
}

// elements returns the names in a path.
func elements(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(name string) bool { return name == "" || name == "." })
}

// checkAbove returns an error if another user can replace what is in a folder on the way to dir.
func checkAbove(above, dir string) error {
	info, err := os.Lstat(above)
	switch {
	case err != nil:
		return err
	case !IsTrusted(info):
		return fmt.Errorf("%s belongs to another user (%d), who can replace %s", above, ownerOf(info), dir)
	case isOpenTo(info, writingOthers) && info.Mode()&fs.ModeSticky == 0:
		return fmt.Errorf("all users can write to %s, and replace %s", above, dir)
	}
	return nil
}
