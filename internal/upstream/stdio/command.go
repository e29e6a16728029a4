// Package stdio reaches MCP servers that are child processes, over their stdin and
// stdout: a [Command] starts one process for each session.
//
// # The life of a child process
//
//	Dial ──▶ start ──▶ running ──────────────────────────▶ Close
//	           │          │ exits by itself                  │ stdin: what is queued, then EOF
//	           │          │                                  │ CloseTimeout
//	     not found,       │                                  ▼
//	     no permission    │                                SIGTERM to its process group
//	           │          │                                  │ CloseTimeout
//	           ▼          ▼                                  ▼
//	         error    SIGKILL to what is left ◀── exit ── SIGKILL to its process group
//	                  of its process group
//	                      │
//	                      ▼
//	                  reaped; Recv gives what is still in the pipe, then the reason
//
// The child leads its own process group, so that servers behind wrappers (npx, uv,
// sh) die with them. On Linux the kernel kills the child when the gateway dies
// (PR_SET_PDEATHSIG). The kernel ties that signal to the thread that forked
// (golang/go#27505), so one goroutine, locked to its thread, starts the child and
// waits for it: the thread cannot end before the child. This costs no extra thread,
// because a wait for a process occupies one anyway. (The Go runtime ends a program
// that needs more than 10,000 threads. A program with more children must raise
// debug.SetMaxThreads.) Grandchildren do not inherit the signal; they see the end of
// their stdin.
//
// The package always reads stderr, so that no child can hang on a full pipe, and logs
// each line at level info as "server stderr", at a bounded rate: stderr is the server's
// own log. Servers must not write secrets to it. The package drops and counts lines
// on stdout that are not JSON, and logs their first 80 bytes, but no parts of JSON that
// is spread over several lines.
//
// Other Unix systems have no parent-death signal. Windows has no process groups
// either: there Close ends the process itself instead of sending SIGTERM.
package stdio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/buffer"
	"github.com/mcp-sse/mcp-sse/internal/caller"
	"github.com/mcp-sse/mcp-sse/internal/environ"
	"github.com/mcp-sse/mcp-sse/internal/upstream/statelessserver"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

const defaultCloseTimeout = 2 * time.Second

var _ jsonrpc.Dialer = Command{}

// Command is an upstream.Command, which says what the fields mean that are not explained here, and what a gateway and
// its program need of it besides.
type Command struct {
	Path         string
	Args         []string
	Env          []string
	PrincipalEnv string
	Dir          string
	MaxLineBytes int
	CloseTimeout time.Duration
	Logger       *slog.Logger

	// Inherited are the names of those variables in Env that nobody has given to this server on purpose: they
	// are those of this process. Any other variable in Env belongs to the identity under which the server is
	// remembered: with another value it is another server. With a nil Env all are inherited.
	Inherited []string
	// Route is the path at which the gateway serves the command, which a child process finds in
	// environ.ParentsVariable. It is no part of what the server is.
	Route string
	// Metrics counts starts, exits and lines that are no messages. nil: nothing is counted.
	Metrics *metrics.Metrics

	running *sync.Map // the living children of it and its copies; nil: Abort does nothing
}

// Observed returns a copy of c that logs to l and counts in m if c has no Logger and no
// Metrics of its own.
func (c Command) Observed(l *slog.Logger, m *metrics.Metrics) jsonrpc.Dialer {
	if c.Logger == nil {
		c.Logger = l
	}
	if c.Metrics == nil {
		c.Metrics = m
	}
	c.running = new(sync.Map)
	return c
}

// Abort kills at once the process groups of all children that c and its copies have
// started. It is for a program that ends without closing its sessions. It does nothing
// unless Observed made c.
func (c Command) Abort() {
	for child := range c.children() {
		child.signal(killGroup)
	}
}

// children returns the living children of c and its copies.
func (c Command) children() iter.Seq[*child] {
	return func(yield func(*child) bool) {
		if c.running != nil {
			c.running.Range(func(one, _ any) bool { return yield(one.(*child)) })
		}
	}
}

// Excuse says what a running child that c or a copy has started, and that has sent no
// message, does wrong, and what to do: it writes text to stdout, say. It quotes nothing. The
// text continues a sentence. It is empty if nothing is known, or unless Observed made c.
func (c Command) Excuse() string {
	for child := range c.children() {
		if excuse := child.excuse(); excuse != "" {
			return excuse
		}
	}
	return ""
}

// Check returns an error if the program cannot be found or executed, without starting it.
func (c Command) Check() error {
	cmd := exec.Command(c.Path)
	if !filepath.IsAbs(c.Path) && filepath.Base(c.Path) != c.Path { // PATH is not searched
		cmd.Path = filepath.Join(c.Dir, c.Path)
	}
	if cmd.Err != nil {
		return c.explain(cmd.Err)
	}
	info, err := os.Stat(cmd.Path)
	switch {
	case err != nil:
		return c.explain(err)
	case info.IsDir():
		return c.explain(syscall.EISDIR)
	case info.Mode()&0o111 == 0 && runtime.GOOS != "windows":
		return c.explain(fs.ErrPermission)
	}
	return nil
}

// Dial starts the child process, as upstream.Command says. One that refuses initialize because it speaks only MCP
// 2026-07-28 is served as one of 2025-11-25.
func (c Command) Dial(ctx context.Context) (jsonrpc.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start %q: %w", c.Path, err)
	}
	c = c.withDefaults()
	if c.PrincipalEnv != "" {
		var err error
		c.Env, err = c.environ(ctx)
		if err != nil {
			return nil, fmt.Errorf("start %q: %w", c.Path, err)
		}
	}
	child := newChild(c)
	started := make(chan error, 1)
	go child.supervise(started) // ends when the process has
	select {
	case err := <-started:
		if err != nil {
			return nil, err
		}
		return statelessserver.NewPipe(child, child.limited), nil
	case <-ctx.Done():
		if <-started == nil { // a start takes next to no time
			child.signal(killGroup) // nothing was sent that the child could want to finish
			_ = child.Close()       // logs its error
		}
		return nil, fmt.Errorf("start %q: %w", c.Path, ctx.Err())
	}
}

// environ returns the environment with PrincipalEnv.
func (c Command) environ(ctx context.Context) ([]string, error) {
	principal := ""
	if p, ok := caller.FromContext(ctx); ok {
		principal = p.Principal
	}
	if strings.ContainsRune(principal, 0) {
		return nil, errors.New("the principal has a NUL byte, which no environment variable can have")
	}
	return append(slices.Clip(c.environment()), c.PrincipalEnv+"="+principal), nil
}

// ofProcess returns the variables of the process: those of c, but what its caller has inherited of the folder
// in which that runs is for the folder of the process.
func (c Command) ofProcess() []string {
	own := false // it has inherited a PWD
	env := slices.DeleteFunc(slices.Clone(c.environment()), func(variable string) bool {
		name, _ := environ.Split(variable)
		switch {
		case !c.inherits(name):
			return false
		case name == "PWD":
			own = true
			return true
		}
		return c.Dir != "" && (name == "OLDPWD" || name == "VSCODE_CWD")
	})
	if dir, err := filepath.Abs(c.Dir); own && err == nil {
		env = append(env, "PWD="+dir)
	}
	return env
}

func (c Command) withDefaults() Command {
	if c.MaxLineBytes <= 0 {
		c.MaxLineBytes = buffer.MaxMessageBytes
	}
	if c.CloseTimeout <= 0 {
		c.CloseTimeout = defaultCloseTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.running == nil {
		c.running = new(sync.Map)
	}
	return c
}

// explain says why a start failed, and what to change in the configuration.
func (c Command) explain(err error) error {
	why := ""
	switch _, statErr := os.Stat(c.Dir); {
	case c.Path == "":
		why = "no program is given"
	case c.Dir != "" && statErr != nil:
		why = fmt.Sprintf("its working directory %q cannot be used: create it or give another", c.Dir)
	case errors.Is(err, exec.ErrNotFound):
		why = "there is no such program in PATH: install it or give its path"
	case errors.Is(err, exec.ErrDot):
		why = "it was found in the current directory only: give it as a path, with ./ in front"
	case errors.Is(err, fs.ErrNotExist) && c.isOfWindows(err):
		why = "its first line ends as lines of Windows do, so its interpreter is not found: " +
			"save it with the line ends of Unix (LF)"
	case errors.Is(err, fs.ErrNotExist):
		why = "there is no such file, or the interpreter in its first line is missing: check the path"
	case errors.Is(err, syscall.EISDIR):
		why = "it is a directory: give the path of a program"
	case errors.Is(err, fs.ErrPermission):
		why = "it may not be executed: check its permissions (chmod +x) and those of its folder"
	case errors.Is(err, syscall.ENOEXEC):
		why = "it has no #! line, or is made for another machine"
	default:
		return fmt.Errorf("start %q: %w", c.Path, err)
	}
	return &startError{fmt.Sprintf("start %q: %s", c.Path, why), err}
}

// isOfWindows reports whether what could not be run is a script whose first line ends with CR LF.
func (c Command) isOfWindows(err error) bool {
	failed, ok := errors.AsType[*fs.PathError](err)
	if !ok {
		return false
	}
	path := failed.Path // where it was found
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.Dir, path)
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	start := make([]byte, 256)
	n, _ := io.ReadFull(file, start) // a short file is none of its errors
	line, _, _ := bytes.Cut(start[:n], []byte("\n"))
	return bytes.HasPrefix(line, []byte("#!")) && bytes.HasSuffix(line, []byte("\r"))
}

// startError is a start that failed. Its text says the same as the cause, in plain words.
type startError struct {
	text  string
	cause error
}

func (e *startError) Error() string { return e.text }
func (e *startError) Unwrap() error { return e.cause }

// name returns the command's name for logs, without arguments, which may hold secrets.
func (c Command) name() string { return filepath.Base(c.Path) }
