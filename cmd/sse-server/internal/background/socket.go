package background

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/internal/private"
)

// Windows and the sse-server that they share meet at a Unix socket in a directory of this user alone:
//
//	daemon-8080.sock        the socket
//	daemon-8080.sock.lock   whoever holds it listens there, and nobody else makes or removes the socket
//	daemon-8080.sock.start  whoever holds it starts the one who listens
//
// The system releases a lock when its process ends, however that is. The files of locks stay. Somebody may
// delete them: see IsReachable.
//
// The shared sse-server of a file has its socket in the directory of the state always: some clients pass on no variable
// that names the other.
//
// The directory of the state can be in a home directory that several machines share: there names have the host too, as
// in daemon-8080-1f3a5b7c.sock.

// maxSocketPath bounds the path of a socket, in bytes: 103 on macOS, 107 on Linux and Windows.
const maxSocketPath = 103

// socketOf returns the path of the socket of a shared sse-server with this name, a number, on this host, and makes its
// directory.
func socketOf(c *config.Config, name, host string) (string, error) {
	dir := filepath.Join(c.StateDir, "run")
	if c.RuntimeDir != "" && !c.IsOfFile() && private.CheckClosed(c.RuntimeDir) == nil {
		dir = filepath.Join(c.RuntimeDir, "sse-server")
	} else {
		sum := sha256.Sum256([]byte(host)) // a name can be too long for a path
		name += "-" + hex.EncodeToString(sum[:4])
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if err := private.CheckClosed(dir); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "daemon-"+name+".sock")
	if len(path) > maxSocketPath {
		return "", fmt.Errorf("%s is too long for a socket: "+
			"set XDG_RUNTIME_DIR or XDG_STATE_HOME to a directory with a shorter name", path)
	}
	return path, nil
}

// SocketOf returns the path of the socket of the shared sse-server that c means, and makes its directory.
func SocketOf(c *config.Config) (string, error) {
	host, _ := os.Hostname() // all machines without one are one
	return socketOf(c, c.SocketName(), host)
}

// Listener listens at the socket of a shared sse-server, and holds its lock.
type Listener struct {
	*net.UnixListener
	path   string
	socket os.FileInfo // what is at path, as long as that is its own
	lock   *flock.Flock
	close  func() error // once
}

// Listen takes the socket at a path, also if one is there whose sse-server has ended.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	if err := private.CheckClosed(filepath.Dir(path)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, daemonStart)
	defer cancel()
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	if locked, err := lock.TryLockContext(ctx, daemonPoll); !locked {
		return nil, fmt.Errorf("another sse-server serves %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(err, lock.Close())
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	listener.SetUnlinkOnClose(false)
	l := &Listener{UnixListener: listener, path: path, lock: lock}
	l.close = sync.OnceValue(func() error {
		isOwn := l.IsReachable() // before its end: another one may be the same file after it
		err := l.UnixListener.Close()
		if isOwn {
			err = errors.Join(err, os.Remove(l.path))
		}
		return errors.Join(err, l.lock.Close())
	})
	l.socket, err = os.Lstat(path)
	if err == nil {
		_ = os.SameFile(l.socket, l.socket) // on Windows this finds out which file it is
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// IsReachable reports whether windows that connect to the path reach this listener. If somebody deletes the files of
// the directory, another daemon takes the lock, and listens at the path.
func (l *Listener) IsReachable() bool {
	now, err := os.Lstat(l.path)
	return err == nil && l.socket != nil && os.SameFile(now, l.socket)
}

// Close ends Accept, removes the socket if it is its own, and then releases the lock.
func (l *Listener) Close() error { return l.close() }

// errOtherUser reports that another user is at the other end of a socket.
var errOtherUser = errors.New("another user is at the socket")

// Accept waits for a connection of this user. It closes those of others.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if checkPeer(conn) == nil {
			return fromSocket{conn}, nil
		}
		_ = conn.Close()
	}
}

// fromSocket is a connection to a socket. It comes from this machine, as one to a loopback address does.
type fromSocket struct{ net.Conn }

var loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}

func (fromSocket) LocalAddr() net.Addr  { return loopback }
func (fromSocket) RemoteAddr() net.Addr { return loopback }

const (
	// daemonStart bounds the start of the program. Its servers start later.
	daemonStart = 20 * time.Second
	// daemonPoll is the time between two questions whether it is there.
	daemonPoll = 10 * time.Millisecond
)
