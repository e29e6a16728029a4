package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/mcp-sse/mcp-sse/docsearch/client"
	"github.com/mcp-sse/mcp-sse/docsearch/daemon"
	"github.com/mcp-sse/mcp-sse/docsearch/discovery"
	"github.com/mcp-sse/mcp-sse/docsearch/index"
	"github.com/mcp-sse/mcp-sse/docsearch/internal/printable"
	"github.com/mcp-sse/mcp-sse/docsearch/models"
)

// program is one run of docsearch.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
}

// commands is the command line.
type commands struct {
	Search  searchCommand  `cmd:"" help:"Search, and print what is found."`
	MCP     mcpCommand     `cmd:"" name:"mcp" help:"Serve an agent over MCP on stdin and stdout."`
	Status  statusCommand  `cmd:"" help:"Show what the daemon does, and what is indexed."`
	Daemon  daemonCommand  `cmd:"" set:"idle=0s" help:"Run the daemon that indexes and searches. The other commands start one when they need it."`
	Model   modelCommand   `cmd:"" help:"List, install, choose and remove models for searches by meaning."`
	Remove  removeCommand  `cmd:"" help:"Remove a folder from the index. The files stay."`
	Stop    stopCommand    `cmd:"" help:"End the daemon."`
	Extract extractCommand `cmd:"" name:"extract-worker" hidden:"" help:"Extract the text of the document on stdin."`

	Version kong.VersionFlag `help:"Print the version."`
}

// common are the flags of all commands that use a daemon.
type common struct {
	StateDir        string        `help:"Where the index, the log and the lock of the daemon are. $$XDG_STATE_HOME/docsearch, else ~/.local/state/docsearch." env:"DOCSEARCH_STATE_DIR" placeholder:"DIR"`
	Addr            string        `help:"Address to listen on; if the port is taken, the next free one." default:"${addr}"`
	IdleTimeout     time.Duration `help:"The daemon ends after this time without a request; 0: never. The next request starts it again." env:"DOCSEARCH_IDLE_TIMEOUT" default:"${idle}"`
	Model           string        `help:"The model for searches by meaning: glove-100d, which is in the program, none, or an installed one, or the path of a model2vec folder. The one that was chosen for the state directory, else glove-100d." env:"DOCSEARCH_MODEL" placeholder:"NAME"`
	EmbeddingsURL   string        `help:"The base of an OpenAI-compatible API, such as http://127.0.0.1:11434/v1 of Ollama, whose model is used in place of --model. Its key is in $$DOCSEARCH_EMBEDDINGS_KEY, or in a file." env:"DOCSEARCH_EMBEDDINGS_URL" placeholder:"URL"`
	EmbeddingsModel string        `help:"The model of that API." env:"DOCSEARCH_EMBEDDINGS_MODEL" placeholder:"NAME"`
	EmbeddingsKey   string        `name:"embeddings-key-file" help:"A file with the key of that API." env:"DOCSEARCH_EMBEDDINGS_KEY_FILE" placeholder:"FILE"`
	Language        string        `help:"The language whose endings of words searches ignore: ${enum}." enum:"${languages}" default:"en"`
	MaxFileBytes    int64         `help:"Larger files are not indexed." default:"16777216"`
}

// logging is the flag of the commands that run for long.
type logging struct {
	LogLevel slog.Level `help:"What to log on stderr, and what the daemon logs that this command starts: debug, info, warn, error." default:"info"`
}

// usage is an error in how docsearch was called.
type usage struct{ error }

// run runs one command and returns the exit code: 0, 1 if it failed, 2 if it was
// called wrongly.
func (p *program) run(ctx context.Context, args []string) (code int) {
	var line commands
	parser, err := kong.New(&line,
		kong.Name("docsearch"),
		kong.Description("Search the documents in your folders: text, source code, PDF, "+
			"Office and OpenDocument files, EPUB, RTF and notebooks. "+
			"Set DOCSEARCH_TOKEN for all commands to keep other users of the machine from the daemon."),
		kong.Writers(p.stdout, p.stderr),
		kong.Vars{"version": "docsearch " + version(), "idle": "1h", "addr": daemon.DefaultAddr,
			"models":    models.DefaultSource,
			"languages": strings.Join(index.Languages, ",")},
		kong.Exit(func(n int) { panic(exit(n)) }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		panic(err) // the command line is declared wrongly
	}
	defer func() {
		if n, ok := recover().(exit); ok {
			code = int(n)
		}
	}()
	parsed, err := parser.Parse(args)
	if err != nil {
		return p.failed(usage{err})
	}
	return p.failed(parsed.Run(p))
}

// exit is how kong ends the program after --help and --version.
type exit int

// failed prints an error, if any, and returns the exit code.
func (p *program) failed(err error) int {
	switch wrong, ok := errors.AsType[usage](err); {
	case err == nil:
		return 0
	case ok:
		fmt.Fprintf(p.stderr, "docsearch: %s\nRun docsearch --help.\n", printable.Lines(wrong.Error()))
		return 2
	}
	fmt.Fprintf(p.stderr, "docsearch: %s\n", printable.Lines(err.Error()))
	return 1
}

// version is that of the module, or of the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}

func newLogger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// stateDir returns the state directory.
func (c *common) stateDir(p *program) (string, error) {
	if c.StateDir != "" {
		return absolute(c.StateDir)
	}
	return discovery.StateDir(p.getenv)
}

// client returns a client that starts a daemon with the same flags when there is none,
// unless noStart is set. It logs on stderr from level on, the daemon what is worth a note.
func (c *common) client(p *program, level slog.Level, noStart bool) (*client.Client, error) {
	dir, err := c.stateDir(p)
	if err != nil {
		return nil, err
	}
	if _, err := c.endpoint(p); err != nil {
		return nil, err // before a daemon fails with it
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the path of docsearch itself: %w", err)
	}
	return client.New(client.Options{
		StateDir: dir, Command: append([]string{self}, c.daemonArgs(dir, min(level, slog.LevelInfo))...),
		Token: p.token(), Logger: newLogger(p.stderr, level), NoStart: noStart,
	})
}

// daemonArgs is the command line of the daemon that a client starts. Secrets are not
// in it, because all users of the machine can read it.
func (c *common) daemonArgs(dir string, level slog.Level) []string {
	args := []string{
		"daemon", "--state-dir", dir, "--addr", c.Addr, "--idle-timeout", c.IdleTimeout.String(),
		"--max-file-bytes", fmt.Sprint(c.MaxFileBytes), "--language", c.Language, "--log-level", level.String(),
	}
	for flag, value := range map[string]string{"--model": c.Model, "--embeddings-url": c.EmbeddingsURL,
		"--embeddings-model": c.EmbeddingsModel, "--embeddings-key-file": c.EmbeddingsKey} {
		if value != "" {
			args = append(args, flag, value)
		}
	}
	return args
}

// token is what clients send to the daemon, and what it asks for. It is no flag,
// because all users of the machine can read the command line; a daemon that a client
// starts inherits it.
func (p *program) token() string { return p.getenv("DOCSEARCH_TOKEN") }
