//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

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

// isTrusted reports whether this user trusts another one with the directories above its own.
func isTrusted(uid int) bool {
	if uid == os.Geteuid() || uid == 0 {
		return true
	}
	uidMap, _ := os.ReadFile("/proc/self/uid_map")
	return uid == unmapped && isUnmapped(uid, string(uidMap))
}

// checkPrivate returns an error unless a directory is this user's alone, and no other user can put another one
// in its place. The group of a directory above it may: a home directory can belong to its group. checkPeer checks
// the process at a socket in it.
func checkPrivate(dir string) error {
	if err := checkOwned(dir); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("other users can open %s: chmod 700 it", dir)
	}
	return err
}

// checkOwned returns an error unless a directory belongs to this user, and no other user can put another one in its place,
// but for the group of one above it.
func checkOwned(dir string) error {
	at, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	info, err := os.Stat(at)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case ownerOf(info) != os.Geteuid():
		return fmt.Errorf("%s belongs to another user (%d)", dir, ownerOf(info))
	}
	for above := filepath.Dir(at); ; above = filepath.Dir(above) {
		info, err := os.Stat(above)
		switch {
		case err != nil:
			return err
		case !isTrusted(ownerOf(info)):
			return fmt.Errorf("%s belongs to another user (%d), who can replace %s", above, ownerOf(info), dir)
		case info.Mode().Perm()&0o002 != 0 && info.Mode()&os.ModeSticky == 0:
			return fmt.Errorf("all users can write to %s, and replace %s", above, dir)
		case above == filepath.Dir(above):
			return nil
		}
	}
}

func ownerOf(info os.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }
