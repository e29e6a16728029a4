// Package private says whether a folder is this user's alone, so that no other user chooses what is in it.
//
//	CheckFolder    it is the user's, or root's, and no other user can write to it
//	CheckOwned     it is the user's, and no other user can write to it, or put another one in its place
//	CheckClosed    no other user can open it either
//	CheckSecluded  no other user, and no project, has a file in a folder above it
//
// A folder above it may be of root, and open to its group, as a home directory can be. It may be open to all if only
// the owner of a file can replace it there (sticky), as /tmp is, but not for CheckSecluded.
package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
)

// CheckFolder returns an error unless a folder belongs to this user or to root, is no link, and is not open to all. It
// says nothing of the folders above it: those of a volume of a container are often open to all, and nobody else is
// there.
func CheckFolder(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case info.Mode().Type() == fs.ModeSymlink:
		return fmt.Errorf("%s is a link: put a folder there", dir)
	}
	return check(dir, info, IsTrusted)
}

// check returns an error unless a file is a folder of one of those users, and not open to all.
func check(dir string, info fs.FileInfo, isOfThem func(fs.FileInfo) bool) error {
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case !isOfThem(info):
		return fmt.Errorf("%s belongs to another user%s: chown it to the user of this program", dir, ownerText(info))
	case isOpenTo(info, writingOthers):
		return fmt.Errorf("all users of this machine can write to %s: chmod 700 it", dir)
	}
	return nil
}

// CheckClosed returns an error unless a folder is owned, as with CheckOwned, and no other user can open it.
func CheckClosed(dir string) error {
	if err := CheckOwned(dir); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err == nil && isOpenTo(info, groupAndOthers) {
		return fmt.Errorf("other users can open %s: chmod 700 it", dir)
	}
	return err
}

// CheckSecluded returns an error unless a folder is owned, as with CheckOwned, and a program that starts below it and
// looks for its files in the folders above finds none of others there: no other user can make one, and none is that of
// a project but for the home directory.
func CheckSecluded(dir string) error {
	if err := CheckOwned(dir); err != nil {
		return err
	}
	at, err := filepath.Abs(dir)
	if err == nil {
		at, err = filepath.EvalSymlinks(at)
	}
	if err != nil {
		return err
	}
	for above := at; ; above = filepath.Dir(above) {
		info, err := os.Stat(above)
		if err != nil {
			return err
		}
		if isOpenTo(info, writingOthers) {
			return fmt.Errorf("all users can write to %s, and so choose what programs find that run below it", above)
		}
		if name := projectIn(above); name != "" && !isHome(info) {
			return fmt.Errorf("%s is a project: it has %s, which chooses for programs that run below it", above, name)
		}
		if above == filepath.Dir(above) {
			return nil
		}
	}
}

// projectFiles are what package managers and runners look for in the folders above the one they start in. The list
// cannot be complete. Most projects have one of them.
var projectFiles = []string{
	".git", ".hg", ".svn", ".envrc",
	"node_modules", "package.json", ".pnp.cjs", ".yarnrc.yml", "pnpm-workspace.yaml", "deno.json", "deno.jsonc",
	"pyproject.toml", "uv.toml", ".venv", ".python-version", ".node-version", ".nvmrc", ".tool-versions",
	"mise.toml", ".mise.toml", "go.mod", "go.work", "Cargo.toml", ".cargo", "global.json",
}

// projectIn returns the name of a file of a project in a folder; empty if there is none.
func projectIn(dir string) string {
	for _, name := range projectFiles {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return name
		}
	}
	return ""
}

// isHome reports whether a folder is the home directory: that of the environment, or the one that the system has for
// this user, as a program may have been given another one.
func isHome(info fs.FileInfo) bool {
	var homes []string
	if home, err := os.UserHomeDir(); err == nil {
		homes = append(homes, home)
	}
	if u, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil {
		homes = append(homes, u.HomeDir)
	}
	return slices.ContainsFunc(homes, func(home string) bool {
		at, err := os.Stat(home)
		return err == nil && os.SameFile(at, info)
	})
}

// OpenFile opens a file to write to, and makes it, with mode 0600, and its folder. The folder must be as with
// CheckFolder, or a link to one, and the file be no link: that would empty, or write to, any file of this user.
func OpenFile(path string, flag int) (*os.File, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err == nil {
		err = CheckFolder(dir)
	}
	if err != nil {
		return nil, err
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file: delete it", path)
	case !IsOwn(info):
		return nil, fmt.Errorf("%s belongs to another user: delete it", path)
	}
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|flag, 0o600)
}
