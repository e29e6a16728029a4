package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// An agent that gives up before its server has booted ends sse-server stdio, and the server with it: so
// the next start would be as cold. Before it ends, sse-server starts itself once more, for nobody:
//
//	agent ── initialize ──▶ sse-server stdio ──▶ server, which boots
//	agent leaves            sse-server stdio ends, and its server
//	                        sse-server stdio --learn ──▶ server boots, says what it has, and ends
//	agent ── initialize ──▶ sse-server stdio answers from memory

// maxIntroduction bounds what is read of a client to find its initialize, in bytes.
const maxIntroduction = 64 << 10

// introduction watches a client of stdio until it is initialized: it is the reader and the writer of both
// streams. It is safe for concurrent use.
type introduction struct {
	in  io.Reader
	out io.Writer

	mu       sync.Mutex // guards what follows
	line     []byte     // the beginning of the client's next line
	read     int        // bytes of the client so far
	params   json.RawMessage
	answered bool
}

// Read reads from the client.
func (i *introduction) Read(p []byte) (int, error) {
	n, err := i.in.Read(p)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.params == nil && i.read < maxIntroduction {
		i.read += n
		i.line = append(i.line, p[:n]...)
		i.findParams()
	}
	return n, err
}

func (i *introduction) findParams() {
	for i.params == nil {
		line, rest, whole := bytes.Cut(i.line, []byte("\n"))
		if !whole {
			return
		}
		if m, err := jsonrpc.Parse(line); err == nil && m.Method == mcp.MethodInitialize {
			i.params = bytes.Clone(m.Params())
			rest = nil
		}
		i.line = rest
	}
}

// Write writes to the client.
func (i *introduction) Write(p []byte) (int, error) {
	n, err := i.out.Write(p)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answered = i.answered || err == nil && bytes.Contains(p, []byte(`"protocolVersion"`))
	return n, err
}

// unanswered returns the params of the client's initialize if it has got no result; else nil.
func (i *introduction) unanswered() json.RawMessage {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.answered {
		return nil
	}
	return i.params
}

// learnLater starts a process that learns what the server says to such a client, and outlives this one.
func (m *Main) learnLater(params json.RawMessage, log *slog.Logger) {
	err := func() error {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		at := slices.Index(m.Args, "--")
		if at < 0 {
			at = len(m.Args)
		}
		cmd := exec.Command(self, slices.Insert(slices.Clone(m.Args), at, "--learn")...)
		cmd.SysProcAttr = detached()
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		defer stdin.Close()
		if err := cmd.Start(); err != nil {
			return err
		}
		log.Info("client left before its server was ready: a process starts it once more and remembers what it says", "pid", cmd.Process.Pid)
		_, err = stdin.Write(params) // it fits into the pipe
		return err
	}()
	if err != nil {
		log.Warn("what the server says could not be learned", "err", err)
	}
}

// learn has the server say what it says to a client with the params on stdin, if that is not remembered.
func (m *Main) learn(c *config.Config, gw *gateway.Gateway, log *slog.Logger) int {
	if err := os.MkdirAll(c.StateDir, 0o700); err != nil {
		log.Warn("what the server says could not be learned", "err", err)
		return exitFailure
	}
	lock := flock.New(filepath.Join(c.StateDir, "learn-"+m.argsHash()+".lock"), flock.SetPermissions(0o600))
	if locked, _ := lock.TryLock(); !locked { // another one does it, or nothing can be written
		return exitOK
	}
	defer lock.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { // ends with ctx
		select {
		case <-m.signals:
			stop()
		case <-ctx.Done():
		}
	}()
	params, err := io.ReadAll(io.LimitReader(m.Stdin, maxIntroduction))
	if err == nil {
		err = gw.Learn(ctx, params) // its timeouts bound it
	}
	code := exitOK
	if err != nil {
		log.Warn("what the server says could not be learned", "err", err)
		code = exitFailure
	}
	return m.stop(log, time.Duration(c.ShutdownTimeout), func(ctx context.Context) { _ = gw.Shutdown(ctx) }, gw.Abort, code)
}

// argsHash names the arguments and the directory of this process in the name of a file.
func (m *Main) argsHash() string {
	dir, _ := os.Getwd()
	sum := sha256.Sum256([]byte(strings.Join(append([]string{dir}, m.Args...), "\x00")))
	return hex.EncodeToString(sum[:8])
}
