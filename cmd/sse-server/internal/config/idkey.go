package config

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/atomicfile"
	"github.com/mcp-sse/mcp-sse/internal/private"
	"github.com/mcp-sse/mcp-sse/internal/signedid"
)

// maxIDKey bounds the length of a key of ids, in bytes.
const maxIDKey = 4096

// readIDKey reads the key that signs ids, unless a reload keeps that. The first start to serve
// makes the file. Where the default place cannot be used, the process has a key of its own.
func (c *Config) readIDKey(lookupEnv func(string) (string, bool)) (err error) {
	if c.IDKey != nil || c.NoIDKey != nil {
		return nil
	}
	path := c.IDKeyFile
	if path == "" && c.StateDir != "" {
		path = filepath.Join(c.StateDir, "id-key")
	}
	if path == "" {
		err = errors.New("neither STATE_DIRECTORY nor HOME is set")
	} else if c.IDKey, err = readKeyFile(path); errors.Is(err, fs.ErrNotExist) {
		if c.NATS != "" {
			return c.refuse("id-key-file",
				"%v: with --nats it must be there, the same on all replicas; make it once with: "+
					"openssl rand -base64 32", err)
		}
		if c.Does != "serve" {
			return nil
		}
		err = makeKeyFile(path)
		if err == nil || errors.Is(err, fs.ErrExist) {
			c.IDKey, err = readKeyFile(path) // perhaps that of another process
		}
	}
	switch {
	case err == nil:
	case c.IDKeyFile != "", errors.Is(err, errBadKey):
		return c.refuse("id-key-file", "%v", err)
	case c.Does == "serve":
		c.NoIDKey = err
	}
	return nil
}

// stateDir returns the directory for what outlives the process, empty if there is none: that of
// systemd, or that of the user (XDG Base Directory Specification).
func stateDir(lookupEnv func(string) (string, bool)) string {
	get := func(name string) string { value, _ := lookupEnv(name); return value }
	switch dir, _, _ := strings.Cut(get("STATE_DIRECTORY"), ":"); {
	case dir != "":
		return dir
	case filepath.IsAbs(get("XDG_STATE_HOME")):
		return filepath.Join(get("XDG_STATE_HOME"), "sse-server")
	case filepath.IsAbs(get("HOME")):
		return filepath.Join(get("HOME"), ".local", "state", "sse-server")
	}
	return ""
}

// errBadKey reports a file that is no key.
var errBadKey = errors.New("no key of ids")

// readKeyFile returns the key in a file that others can neither read nor change.
func readKeyFile(path string) ([]byte, error) {
	key, info, err := readFile(path)
	key = bytes.TrimSpace(key)
	switch {
	case err != nil:
		return nil, err
	case isForOthers(info):
		return nil, fmt.Errorf("%w: %s can be read or changed by other users of this machine, who could sign ids: "+
			"chmod 600", errBadKey, path)
	case info.Mode().IsRegular() && !private.IsTrusted(info):
		return nil, fmt.Errorf("%w: %s belongs to another user, who could sign ids: "+
			"chown it to the user of this program", errBadKey, path)
	case len(key) < signedid.MinKey || len(key) > maxIDKey:
		return nil, fmt.Errorf("%w: %s must hold %d to %d random characters, such as the output of: "+
			"openssl rand -base64 32", errBadKey, path, signedid.MinKey, maxIDKey)
	}
	return key, nil
}

// makeKeyFile makes the file of a new key, whole or not at all. It fails if another process has
// made one meanwhile.
func makeKeyFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Create(path, []byte(rand.Text()+rand.Text()+"\n"))
}
